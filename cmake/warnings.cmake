# Every target of ours: lull_warnings(target).
function(lull_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
  # What daemon/base/mutex.h and absl/base/thread_annotations.h say is checked.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>)
  endif()
  # GCC 13 takes a reference out of a view for one into the view (segment.h).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND
     CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
  endif()
endfunction()

# For what is never hot, as tests, the CLI, and exports: -O1 and line tables alone compile
# in 60 to 65 % of the time of -O2 -g. After CMAKE_BUILD_TYPE's; other types of build are left
# alone.
function(lull_compiles_quickly target)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:RelWithDebInfo>:-O1;-g1>")
endfunction()

# GCC looks for garbage once it holds a GiB, not from 128 MiB on: large batches compile in 15.2
# and 13.1 s of processor time in place of 17.5 and 14.3, and take 1.4 and 1.0 GB in place of
# 1.1 and 0.7. Ninja runs two more at once than there are processors.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  cmake_host_system_information(RESULT lull_memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  cmake_host_system_information(RESULT lull_processors QUERY NUMBER_OF_LOGICAL_CORES)
  math(EXPR lull_memory_each_mib "${lull_memory_mib} / (${lull_processors} + 2)")
  if(lull_memory_each_mib GREATER_EQUAL 1536)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>")
  endif()
endif()

# Compiles the sources of a target several at once: most of the time goes into the headers
# that they share (protobuf, gRPC, Abseil, CLI11, GoogleTest), so eight files together take
# about as long as two apart. The price: names in the anonymous namespaces of one target
# must differ. LULL_BATCH_SIZE, where a folder sets it, is another number than sixteen.
#   cmake -DLULL_IN_BULK=OFF   each by itself, which is quicker after a change of one file
option(LULL_IN_BULK "Compile several sources of a target at once" ON)
function(lull_in_bulk target)
  set(size 16)
  if(LULL_BATCH_SIZE)
    set(size ${LULL_BATCH_SIZE})
  endif()
  if(LULL_IN_BULK)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/(daemon/|cli)")
    lull_precompiled(${target} product)
  endif()
endfunction()
