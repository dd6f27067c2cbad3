# Unit tests of the CUDA hooks: included by tests/preload/CMakeLists.txt.
#
# The hooks, with a double of the rest of the shim, are one library that the
# tests load ahead of small fake CUDA libraries, as a preload would be.
lull_preload_objects_of(hooks
  support/libdl.cc support/loaded_object.cc support/pins.cc support/symbols.cc
  hooks/copy.cc hooks/cuda_record.cc hooks/dlclose.cc hooks/dlsym.cc hooks/driver_entry.cc
  hooks/launch.cc hooks/memory.cc hooks/pointer_kind.cc hooks/real.cc
  hooks/sync.cc hooks/wrapper_table.cc steps/control_step.cc)
add_library(lull_cuda_hooks SHARED cuda_shim_double.cc ${hooks})
lull_warnings(lull_cuda_hooks)
target_compile_options(lull_cuda_hooks PRIVATE
  -O2 -fvisibility=hidden -fno-exceptions -fno-rtti -fasynchronous-unwind-tables)
target_link_options(lull_cuda_hooks PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/preload/versions.map -Wl,-z,lazy)

function(lull_fake_cuda name soname log)
  add_library(${name} SHARED cuda_fake.cc)
  target_compile_definitions(${name} PRIVATE FAKE_LOG=${log} ${ARGN})
  # Found through the run path of whoever needs it, under the vendor's name.
  set_target_properties(${name} PROPERTIES NO_SONAME ON PREFIX "" SUFFIX ""
    OUTPUT_NAME ${soname} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_cuda)
  target_link_options(${name} PRIVATE -Wl,-soname,${soname})
endfunction()

lull_fake_cuda(lull_fake_driver libcuda.so.1 fake_log_driver FAKE_DRIVER)
foreach(major 12 13)
  lull_fake_cuda(lull_fake_cudart_${major} libcudart.so.${major} fake_log_${major} FAKE_RUNTIME
    FAKE_LAUNCH=fake_launch_${major} FAKE_LAUNCH_NAME="fake_launch_${major}")
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/fake_cudart_${major}.map
    "libcudart.so.${major} { *; };\n")
  target_link_options(lull_fake_cudart_${major} PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/fake_cudart_${major}.map)
  target_link_libraries(lull_fake_cudart_${major} PRIVATE lull_fake_driver)
  add_library(lull_caller_${major} SHARED cuda_caller.cc)
  target_compile_definitions(lull_caller_${major} PRIVATE CALLER=caller_${major})
  target_link_libraries(lull_caller_${major} PRIVATE lull_fake_cudart_${major})
endforeach()

add_library(lull_next_b SHARED cuda_next.cc)
target_compile_definitions(lull_next_b PRIVATE MARKER=2)
add_library(lull_next_a SHARED cuda_next.cc)
target_compile_definitions(lull_next_a PRIVATE MARKER=1)
target_link_libraries(lull_next_a PRIVATE -Wl,--no-as-needed lull_next_b)

lull_test(cuda_hooks_test LABEL unit SOURCES cuda_hooks_test.cc
  LIBRARIES -Wl,--no-as-needed lull_cuda_hooks lull_caller_12 lull_caller_13
            lull_fake_cudart_12 lull_fake_cudart_13 lull_fake_driver)

lull_test(cuda_lookup_test LABEL unit SOURCES cuda_lookup_test.cc
  LIBRARIES -Wl,--no-as-needed lull_cuda_hooks ${CMAKE_DL_LIBS})
target_compile_definitions(cuda_lookup_test PRIVATE
  CUDART_12="$<TARGET_FILE:lull_fake_cudart_12>" CUDART_13="$<TARGET_FILE:lull_fake_cudart_13>"
  CALLER_13="$<TARGET_FILE:lull_caller_13>" DRIVER="$<TARGET_FILE:lull_fake_driver>"
  NEXT_A="$<TARGET_FILE:lull_next_a>")
add_dependencies(cuda_lookup_test lull_fake_cudart_12 lull_caller_13 lull_next_a)

find_path(LULL_CUDA_INCLUDE cuda_runtime_api.h HINTS ENV CUDA_HOME PATHS /usr/local/cuda
  PATH_SUFFIXES include)
if(LULL_CUDA_INCLUDE)
  lull_test(cuda_signature_test LABEL unit SOURCES cuda_signature_test.cc LIBRARIES)
  target_include_directories(cuda_signature_test SYSTEM PRIVATE ${LULL_CUDA_INCLUDE})
endif()

if(TARGET lull_preload)
  add_dependencies(unit_tests lull_preload)
  lull_script_test(exported_symbols LABEL unit COMMAND
    ${PROJECT_SOURCE_DIR}/tools/check_symbols $<TARGET_FILE:lull_preload>
    ${PROJECT_SOURCE_DIR}/preload/exports.map)
endif()

add_executable(hook_bench ${PROJECT_SOURCE_DIR}/tests/bench/hook_bench.cc)
lull_warnings(hook_bench)
target_link_libraries(hook_bench PRIVATE -Wl,--no-as-needed
  lull_cuda_hooks lull_caller_13 lull_fake_cudart_13 lull_fake_driver)
lull_script_test(bench_hook LABEL bench COMMAND hook_bench)
