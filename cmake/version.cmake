# lull_version: what `--version` prints. For executables alone, because with each commit it
# is another, and whatever links it is linked again.
set(commit_header ${CMAKE_BINARY_DIR}/generated/lull_commit.h)
add_custom_target(lull_commit BYPRODUCTS ${commit_header}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${commit_header}
    -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake)

function(lull_add_version_library)
  set(built "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  string(APPEND built " for ${CMAKE_SYSTEM_PROCESSOR}, ${CMAKE_BUILD_TYPE}")
  if(LULL_SANITIZE)
    string(APPEND built ", sanitizer: ${LULL_SANITIZE}")
  endif()
  string(APPEND built "\\ngRPC ${GRPC_grpc++_VERSION}, protobuf ${GRPC_protobuf_VERSION}")
  add_library(lull_version OBJECT ${CMAKE_SOURCE_DIR}/daemon/base/version.cc)
  lull_warnings(lull_version)
  target_include_directories(lull_version SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/generated)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/daemon/base/version.cc PROPERTIES
    COMPILE_DEFINITIONS "LULL_VERSION=\"${PROJECT_VERSION}\";LULL_BUILT=\"${built}\""
    OBJECT_DEPENDS ${commit_header})
  add_dependencies(lull_version lull_commit)
endfunction()
lull_add_version_library()
