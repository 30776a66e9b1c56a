# Whether the CUDA library of Lockstep is built, and with what: nvcc, cudart and cuBLAS are needed; cuDNN (vendor
# convolutions) and NCCL (GPU to GPU without host memory) are used where they are. The driver is not linked, so that what
# is built here also starts where no GPU is.
#   LOCKSTEP_CUDA                 AUTO: where a toolkit is found; ON: or an error that names what is missing; OFF
#   LOCKSTEP_CUDA_ROOT            folder of the toolkit; else the nvcc of $CUDACXX, $CUDA_HOME, $CUDA_PATH or PATH, that of
#                                 /usr/local/cuda or /opt/cuda, or what scripts/setup.sh --cuda installed (LockstepCudaHeaders)
#   LOCKSTEP_CUDA_ARCHITECTURES   as CMake's CUDA_ARCHITECTURES, or "native" for the GPUs of this machine
# gives LOCKSTEP_CUDA_BUILD, and with it CUDA::cudart, CUDA::cublas, LOCKSTEP_CUDNN and LOCKSTEP_NCCL (libraries, or empty)
set(LOCKSTEP_CUDA AUTO CACHE STRING "Build the CUDA library: AUTO (where a toolkit is found), ON or OFF")
set_property(CACHE LOCKSTEP_CUDA PROPERTY STRINGS AUTO ON OFF)
# GPUs of compute capability 8.0 to 10.0 run machine code made for them; newer ones compile the last of these when they load it.
set(LOCKSTEP_CUDA_ARCHITECTURES "80-real;90-real;100" CACHE STRING "GPU architectures of the CUDA library")

option(LOCKSTEP_GPU_TESTS "Build the tests that need a GPU (label gpu); scripts/gpu_check.sh runs them" OFF)

set(LOCKSTEP_CUDA_BUILD FALSE)
set(LOCKSTEP_CUDA_WHY_NOT "")  # in the summary
set(LOCKSTEP_CUDNN "")
set(LOCKSTEP_NCCL "")

# Not built is not an error, but for those who asked for it.
macro(lockstep_without_cuda reason)
  set(LOCKSTEP_CUDA_WHY_NOT "${reason}")
  if(lockstep_cuda_wanted STREQUAL "ON")
    message(FATAL_ERROR "LOCKSTEP_CUDA=ON, but ${reason}")
  endif()
endmacro()

# The version that a header states by macros: lockstep_cuda_version(OUT header MAJOR_MACRO MINOR_MACRO PATCH_MACRO)
function(lockstep_cuda_version out header)
  set(version "")
  if(EXISTS "${header}")
    file(STRINGS "${header}" lines REGEX "^#define ")
    foreach(macro IN LISTS ARGN)
      if("${lines}" MATCHES "#define +${macro} +([0-9]+)")
        list(APPEND version ${CMAKE_MATCH_1})
      endif()
    endforeach()
    list(JOIN version "." version)
  endif()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

string(TOUPPER "${LOCKSTEP_CUDA}" lockstep_cuda_wanted)
if(lockstep_cuda_wanted STREQUAL "AUTO")
  if(LOCKSTEP_SANITIZE)
    set(LOCKSTEP_CUDA_WHY_NOT "not with sanitizers, unless LOCKSTEP_CUDA=ON")
    return()
  endif()
elseif(LOCKSTEP_CUDA)
  set(lockstep_cuda_wanted ON)
else()
  set(LOCKSTEP_CUDA_WHY_NOT "LOCKSTEP_CUDA=${LOCKSTEP_CUDA}")
  return()
endif()

# nvcc. One that cannot compile (half a toolkit, a host compiler that it does not know) counts as absent, so it is tried apart
# first. Tried anew by each configuring until there is one.
if(NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE)
  if(NOT DEFINED ENV{CUDACXX})
    find_program(LOCKSTEP_NVCC nvcc HINTS ${lockstep_cuda_roots} PATHS ${lockstep_cuda_usual_roots} PATH_SUFFIXES bin)
    mark_as_advanced(LOCKSTEP_NVCC)
    if(LOCKSTEP_NVCC)
      set(ENV{CUDACXX} "${LOCKSTEP_NVCC}")
    endif()
  endif()
  if(NOT DEFINED ENV{CUDAHOSTCXX} AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(ENV{CUDAHOSTCXX} "${CMAKE_CXX_COMPILER}")
  endif()
endif()
set(CMAKE_CUDA_ARCHITECTURES "${LOCKSTEP_CUDA_ARCHITECTURES}")
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(DEFINED ENV{CUDACXX})
    lockstep_without_cuda("$ENV{CUDACXX} cannot compile here (see CMakeFiles/CMakeError.log in the build folder)")
  else()
    lockstep_without_cuda("no nvcc is found; scripts/setup.sh --cuda installs a toolkit")
  endif()
  return()
endif()
enable_language(CUDA)
# CMake 3.25 does not know that nvcc has C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # cuBLAS, cuDNN and NCCL bring the shared one anyway, and one process needs one

find_package(CUDAToolkit QUIET)
foreach(target cudart cublas)
  if(NOT TARGET CUDA::${target})
    lockstep_without_cuda("the toolkit of ${CMAKE_CUDA_COMPILER} has no ${target} to link")
    return()
  endif()
endforeach()
if(NOT LOCKSTEP_CUDA_HEADERS_FOUND)
  lockstep_without_cuda("these headers are not found: ${LOCKSTEP_CUDA_HEADERS_MISSING}")
  return()
endif()

# Libraries that may be absent; their headers are there.
foreach(name cudnn nccl)
  string(TOUPPER "LOCKSTEP_${name}_LIBRARY" variable)
  find_library(${variable} ${name} HINTS ${lockstep_cuda_roots} ${CUDAToolkit_LIBRARY_DIR} PATHS ${lockstep_cuda_usual_roots}
               PATH_SUFFIXES lib64 lib)
endforeach()
mark_as_advanced(LOCKSTEP_CUDNN_LIBRARY LOCKSTEP_NCCL_LIBRARY)
if(LOCKSTEP_CUDNN_LIBRARY)
  set(LOCKSTEP_CUDNN "${LOCKSTEP_CUDNN_LIBRARY}")
endif()
if(LOCKSTEP_NCCL_LIBRARY)
  set(LOCKSTEP_NCCL "${LOCKSTEP_NCCL_LIBRARY}")
endif()
lockstep_cuda_version(LOCKSTEP_CUBLAS_VERSION "${LOCKSTEP_FOLDER_OF_cublas_v2_h}/cublas_api.h"
                      CUBLAS_VER_MAJOR CUBLAS_VER_MINOR CUBLAS_VER_PATCH)
lockstep_cuda_version(LOCKSTEP_CUDNN_VERSION "${LOCKSTEP_FOLDER_OF_cudnn_h}/cudnn_version.h"
                      CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
lockstep_cuda_version(LOCKSTEP_NCCL_VERSION "${LOCKSTEP_FOLDER_OF_nccl_h}/nccl.h" NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
set(LOCKSTEP_CUDA_BUILD TRUE)
