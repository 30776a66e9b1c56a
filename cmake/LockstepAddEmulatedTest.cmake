# lockstep_use_host_kernels(TARGET a.cu b.cu)
#   compiles kernels with the host compiler into a target of this folder, against the emulated device language.
# lockstep_add_emulated_test(NAME x SOURCES a.cpp KERNELS b.cu [LIBRARIES t...] [LABELS l...] [TIMEOUT 120])
#   one Catch2 executable against lockstep::cuda_emulation; a CTest case for each order of streams and seed:
#   seed 0 x {lazy, random} labelled `emulation`, the rest of seeds 0-3 x {lazy, eager, random} also `long`.
#   Without CUDA headers: one case of the name that is reported as skipped.
include(CMakeParseArguments)

function(lockstep_use_host_kernels target)
  # CMake would take .cu for CUDA and leave it out of a build without nvcc. The property holds in this folder only.
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
  if(LOCKSTEP_SANITIZE MATCHES "undefined")
    set(options -fno-sanitize-recover=undefined)
  else()
    # A misaligned vector is a fault on a device and nothing at all on x86: checked at every access, for a tenth of the speed.
    set(options -fsanitize=alignment -fsanitize-undefined-trap-on-error)
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    # The fused multiply-add as an instruction: kernels call it in their innermost loops.
    list(APPEND options -mavx2 -mfma)
  endif()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}")
  target_sources(${target} PRIVATE ${ARGN})
endfunction()

function(lockstep_add_emulated_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT" "SOURCES;KERNELS;LIBRARIES;LABELS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  if(LOCKSTEP_SANITIZE)
    math(EXPR T_TIMEOUT "5 * ${T_TIMEOUT}")
  endif()
  if(NOT LOCKSTEP_CUDA_HEADERS_FOUND)
    add_test(NAME ${T_NAME} COMMAND sh -c "echo skipped: no CUDA headers: ${LOCKSTEP_CUDA_HEADERS_MISSING}; exit 77")
    set_tests_properties(${T_NAME} PROPERTIES LABELS "emulation;${T_LABELS}" SKIP_RETURN_CODE 77)
    return()
  endif()
  add_executable(${T_NAME} ${T_SOURCES})
  if(T_KERNELS)
    lockstep_use_host_kernels(${T_NAME} ${T_KERNELS})
  endif()
  target_link_libraries(${T_NAME} PRIVATE lockstep_emulated_test_main ${T_LIBRARIES} lockstep::cuda_seam
                                          lockstep::cuda_emulation lockstep::options)
  target_include_directories(${T_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/test")
  foreach(seed RANGE 3)
    foreach(order lazy eager random)
      set(case ${T_NAME}_${order}_seed${seed})
      set(labels emulation ${T_LABELS})
      if(NOT seed EQUAL 0 OR order STREQUAL "eager")
        list(APPEND labels long)
      endif()
      add_test(NAME ${case} COMMAND ${T_NAME})
      set_tests_properties(${case} PROPERTIES LABELS "${labels}" TIMEOUT ${T_TIMEOUT}
                           ENVIRONMENT "LOCKSTEP_EMULATION_ORDER=${order};LOCKSTEP_EMULATION_SEED=${seed}")
    endforeach()
  endforeach()
endfunction()
