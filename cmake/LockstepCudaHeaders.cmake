# The CUDA headers, which the host emulation compiles against; nothing is linked and no nvcc is needed.
#   lockstep::cuda_headers   the folders of cuda_runtime.h, cublas_v2.h, cudnn.h and nccl.h, as system headers
#   LOCKSTEP_CUDA_HEADERS    folders to search first, e.g. those of the wheels nvidia-cuda-runtime and nvidia-cudnn-cu13
#   LOCKSTEP_CUDA_ROOT       a toolkit to search before those of $CUDA_HOME, $CUDA_PATH and the usual places
set(LOCKSTEP_CUDA_HEADERS "" CACHE STRING "Folders that hold the CUDA, cuDNN and NCCL headers, searched first")
set(LOCKSTEP_CUDA_ROOT "$ENV{LOCKSTEP_CUDA_ROOT}" CACHE PATH "Folder of the CUDA toolkit; empty: looked for in the usual places")
set(lockstep_cuda_roots ${LOCKSTEP_CUDA_ROOT} $ENV{CUDA_HOME} $ENV{CUDA_PATH})
# The last is where scripts/setup.sh --cuda puts one.
set(lockstep_cuda_usual_roots /usr/local/cuda /opt/cuda "$ENV{HOME}/.cache/lockstep/cuda")
set(LOCKSTEP_CUDA_HEADERS_FOUND TRUE)
set(lockstep_cuda_header_folders "")
foreach(header cuda_runtime.h cublas_v2.h cudnn.h nccl.h)
  string(MAKE_C_IDENTIFIER "LOCKSTEP_FOLDER_OF_${header}" folder)
  find_path(${folder} ${header}
            HINTS ${LOCKSTEP_CUDA_HEADERS} ${lockstep_cuda_roots} PATHS ${lockstep_cuda_usual_roots}
            PATH_SUFFIXES include NO_CACHE)
  if(${folder})
    list(APPEND lockstep_cuda_header_folders "${${folder}}")
  else()
    set(LOCKSTEP_CUDA_HEADERS_FOUND FALSE)
    list(APPEND LOCKSTEP_CUDA_HEADERS_MISSING ${header})
  endif()
endforeach()
list(REMOVE_DUPLICATES lockstep_cuda_header_folders)
if(LOCKSTEP_CUDA_HEADERS_FOUND)
  add_library(lockstep_cuda_headers INTERFACE)
  add_library(lockstep::cuda_headers ALIAS lockstep_cuda_headers)
  target_include_directories(lockstep_cuda_headers SYSTEM INTERFACE ${lockstep_cuda_header_folders})
  target_include_directories(lockstep_cuda_headers INTERFACE "${PROJECT_SOURCE_DIR}")  # "cuda/access.h"
endif()
