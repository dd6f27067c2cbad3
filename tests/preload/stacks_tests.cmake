# Tests of stacks/, python/ and hooks/torch_memory.cc: included by
# tests/preload/CMakeLists.txt.
set(shim ${PROJECT_SOURCE_DIR}/preload)
set(lull_probe_sources stacks_probe.cc
  ${shim}/autograd/backward.cc ${shim}/autograd/callers.cc ${shim}/autograd/forward_table.cc
  ${shim}/autograd/node.cc
  ${shim}/python/find.cc ${shim}/python/gc_hook.cc ${shim}/python/main_thread.cc ${shim}/python/pending_call.cc
  ${shim}/python/step_hook.cc ${shim}/python/torch_version.cc
  ${shim}/ring/backing.cc ${shim}/scopes/open_scopes.cc ${shim}/scopes/record_function.cc
  ${shim}/scopes/scope.cc ${shim}/scopes/scope_name.cc ${shim}/stacks/interning.cc ${shim}/stacks/layouts/debug_offsets.cc
  ${shim}/stacks/libunwind_calls.cc ${shim}/stacks/native.cc ${shim}/stacks/prepare.cc ${shim}/stacks/python_frames.cc
  ${shim}/stacks/python_layout.cc ${shim}/stacks/python_objects.cc
  ${shim}/entry/process_kind.cc ${shim}/entry/settings.cc ${shim}/steps/boundary.cc
  ${shim}/steps/nvtx.cc ${shim}/support/libdl.cc ${shim}/support/loaded_object.cc
  ${shim}/support/pins.cc ${shim}/support/symbols.cc)
add_library(lull_stacks_probe MODULE ${lull_probe_sources})
add_library(lull_torch_probe MODULE ${lull_probe_sources} ${shim}/hooks/torch_engine.cc
  ${shim}/hooks/torch_memory.cc ${shim}/hooks/torch_original.cc ${shim}/hooks/torch_scalar.cc)
foreach(probe lull_stacks_probe lull_torch_probe)
  lull_warnings(${probe})
  target_compile_options(${probe} PRIVATE
    -O2 -fvisibility=hidden -fno-exceptions -fno-rtti -fasynchronous-unwind-tables)
  target_link_options(${probe} PRIVATE -Wl,-z,lazy)
  target_link_libraries(${probe} PRIVATE Threads::Threads)
endforeach()
if(EXISTS ${LULL_LIBUNWIND})  # they look for it beside themselves, as liblull.so does
  configure_file(${LULL_LIBUNWIND} ${CMAKE_CURRENT_BINARY_DIR}/libunwind.so.8 COPYONLY)
endif()
add_library(lull_fake_torch SHARED fake_torch.cc)
lull_warnings(lull_fake_torch)
function(lull_probe_test name label)
  lull_test(${name} LABEL ${label} TIMEOUT 300
    UNTIMED SOURCES ${name}.cc ${ARGN} LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_definitions(${name} PRIVATE
    LULL_STACKS_PROBE="$<TARGET_FILE:lull_stacks_probe>"
    LULL_TORCH_PROBE="$<TARGET_FILE:lull_torch_probe>"
    LULL_PUPPETS="${CMAKE_CURRENT_SOURCE_DIR}/puppets")
  add_dependencies(${name} lull_stacks_probe lull_torch_probe lull_fake_torch)
endfunction()

lull_test(interning_unit_test LABEL unit
  SOURCES interning_unit_test.cc ${shim}/stacks/interning.cc ${shim}/ring/backing.cc
  LIBRARIES Threads::Threads)
lull_test(python_layout_unit_test LABEL unit
  SOURCES python_layout_unit_test.cc ${shim}/stacks/python_objects.cc
    ${shim}/stacks/layouts/debug_offsets.cc)
lull_probe_test(native_stack_unit_test unit)
lull_probe_test(python_interpreters_integration_test integration interpreters.cc)
lull_probe_test(torch_memory_integration_test integration interpreters.cc)

# Prints the price of a scope, beside that of one without us.
lull_script_test(scopes_bench LABEL bench
  COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/../bench/scopes.py
  ENVIRONMENT LULL_STACKS_PROBE=$<TARGET_FILE:lull_stacks_probe>)

# Prints the price of a stack, beside that of a clock read.
lull_script_test(stacks_bench LABEL bench
  COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/puppets/stacks_bench.py
  ENVIRONMENT LULL_STACKS_PROBE=$<TARGET_FILE:lull_stacks_probe>)
