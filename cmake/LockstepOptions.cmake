# Language level, warnings and floating-point rules that hold for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(LOCKSTEP_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined or thread")
option(LOCKSTEP_UNITY "Compile several files at a time where their headers cost most: two thirds of the CPU time for a whole build, more after an edit" OFF)

add_library(lockstep_options INTERFACE)
add_library(lockstep::options ALIAS lockstep_options)
# Arithmetic 1 names every fma; a compiler that contracted a*b+c by itself would change bits (GCC does so even for intrinsics).
target_compile_options(lockstep_options INTERFACE -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                                  -Woverloaded-virtual -Werror)
target_include_directories(lockstep_options INTERFACE "${PROJECT_SOURCE_DIR}/lib")
if(LOCKSTEP_SANITIZE)
  # A finding ends the program: undefined behaviour would else be a line on stderr in a test that passes.
  target_compile_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(lockstep_options INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
  # GCC 12 takes members of std::function inside std::regex for uninitialized as soon as a sanitizer watches them.
  target_compile_options(lockstep_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
