# What the executable and its CUDA library must have in common, as a text that both are compiled with: the version, and
# a hash of the headers whose classes both use. Classes that differ would crash at the first call; texts that differ are
# one clear line. Made when a header changes, without configuring again.
#   lockstep::plugin_interface   "plugin_interface.hpp": LOCKSTEP_PLUGIN_INTERFACE, LOCKSTEP_PLUGIN_FOLDER
if(CMAKE_SCRIPT_MODE_FILE)
  set(all "")
  foreach(header IN LISTS HEADERS)
    file(SHA256 "${header}" one)
    string(APPEND all "${one}")
  endforeach()
  string(SHA256 all "${all}")
  string(SUBSTRING "${all}" 0 12 all)
  set(text "#pragma once\n#define LOCKSTEP_PLUGIN_INTERFACE \"${VERSION} ${all}\"\n#define LOCKSTEP_PLUGIN_FOLDER \"${FOLDER}\"\n")
  set(before "")
  if(EXISTS "${OUTPUT}")
    file(READ "${OUTPUT}" before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE "${OUTPUT}" "${text}")
  endif()
  return()
endif()

include(GNUInstallDirs)
# From the folder of the executable to that of the library, where both are installed.
file(RELATIVE_PATH lockstep_plugin_folder "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/lockstep")
set(lockstep_plugin_header "${PROJECT_BINARY_DIR}/generated/plugin_interface.hpp")
set(lockstep_plugin_headers "")
foreach(header cuda/plugin.hpp lib/backend/backend.hpp lib/backend/out_of_memory.hpp lib/comm/communicator.hpp
               lib/comm/watch.hpp lib/core/canonical_tree.hpp lib/core/error.hpp lib/core/function_ref.hpp lib/core/log.hpp
               lib/core/shape.hpp)
  list(APPEND lockstep_plugin_headers "${PROJECT_SOURCE_DIR}/${header}")
endforeach()
add_custom_command(
  OUTPUT "${lockstep_plugin_header}.stamp" BYPRODUCTS "${lockstep_plugin_header}"
  COMMAND "${CMAKE_COMMAND}" "-DHEADERS=${lockstep_plugin_headers}" "-DVERSION=${PROJECT_VERSION}"
          "-DFOLDER=${lockstep_plugin_folder}" "-DOUTPUT=${lockstep_plugin_header}" -P "${CMAKE_CURRENT_LIST_FILE}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${lockstep_plugin_header}.stamp"
  DEPENDS ${lockstep_plugin_headers} "${CMAKE_CURRENT_LIST_FILE}"
  COMMENT "Writing what the executable and its CUDA library must have in common" VERBATIM)
add_custom_target(lockstep_plugin_interface_header DEPENDS "${lockstep_plugin_header}.stamp")
add_library(lockstep_plugin_interface INTERFACE)
add_library(lockstep::plugin_interface ALIAS lockstep_plugin_interface)
target_include_directories(lockstep_plugin_interface INTERFACE "${PROJECT_BINARY_DIR}/generated" "${PROJECT_SOURCE_DIR}")
add_dependencies(lockstep_plugin_interface lockstep_plugin_interface_header)
