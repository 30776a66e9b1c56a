# lockstep_add_test(NAME core_philox SOURCES a.cpp b.cpp [LIBRARIES t...] [LABELS unit] [TIMEOUT 120] [RANKS n...])
#   one Catch2 executable; one CTest case, or with RANKS one case for each rank count under mpirun.
# The main() of plain executables is test/main.cpp; of MPI ones test/mpi/main.cpp (a failed assertion on one rank fails all).
include(CMakeParseArguments)

# Catch2's runner is compiled once.
add_library(lockstep_test_main STATIC "${PROJECT_SOURCE_DIR}/test/main.cpp")
target_link_libraries(lockstep_test_main PUBLIC Catch2::Catch2)
add_library(lockstep_mpi_test_main STATIC "${PROJECT_SOURCE_DIR}/test/mpi/main.cpp")
target_link_libraries(lockstep_mpi_test_main PUBLIC Catch2::Catch2 MPI::MPI_C)

# Of every test under mpirun.
set(LOCKSTEP_MPI_TEST_ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1)
if(LOCKSTEP_SANITIZE MATCHES "address")
  list(APPEND LOCKSTEP_MPI_TEST_ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)  # Open MPI does not free all that it allocates
endif()

function(lockstep_add_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT" "SOURCES;LIBRARIES;LABELS;RANKS;ARGUMENTS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  if(LOCKSTEP_SANITIZE)
    math(EXPR T_TIMEOUT "5 * ${T_TIMEOUT}")
  endif()
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  add_executable(${T_NAME} ${T_SOURCES})
  target_link_libraries(${T_NAME} PRIVATE lockstep::options Catch2::Catch2 ${T_LIBRARIES})
  target_include_directories(${T_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/test")
  if(T_RANKS)
    target_link_libraries(${T_NAME} PRIVATE lockstep_mpi_test_main)
    foreach(ranks IN LISTS T_RANKS)
      add_test(NAME ${T_NAME}_np${ranks}
               COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none -np ${ranks} $<TARGET_FILE:${T_NAME}> ${T_ARGUMENTS})
      set_tests_properties(${T_NAME}_np${ranks} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT} PROCESSORS 2
                           ENVIRONMENT "${LOCKSTEP_MPI_TEST_ENVIRONMENT}")
    endforeach()
  else()
    target_link_libraries(${T_NAME} PRIVATE lockstep_test_main)
    add_test(NAME ${T_NAME} COMMAND ${T_NAME} ${T_ARGUMENTS})
    set_tests_properties(${T_NAME} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT})
  endif()
endfunction()
