# Tests of stacks/, python/ and hooks/torch_memory.cc: included by
# tests/preload/CMakeLists.txt.
set(shim ${PROJECT_SOURCE_DIR}/preload)
lull_preload_objects_of(probe_objects
  autograd/backward.cc autograd/callers.cc autograd/forward_table.cc autograd/node.cc
  python/find.cc python/gc_hook.cc python/main_thread.cc python/pending_call.cc
  python/step_hook.cc python/torch_version.cc
  ring/backing.cc scopes/open_scopes.cc scopes/record_function.cc
  scopes/scope.cc scopes/scope_name.cc scopes/step_callbacks.cc stacks/interning.cc stacks/layouts/debug_offsets.cc
  stacks/libunwind_calls.cc stacks/native.cc stacks/prepare.cc stacks/python_frames.cc
  stacks/python_layout.cc stacks/python_objects.cc
  entry/process_kind.cc entry/settings.cc steps/boundary.cc
  steps/control_step.cc steps/nvtx.cc support/libdl.cc support/loaded_object.cc
  support/pins.cc support/symbols.cc)
lull_preload_objects_of(torch_objects
  hooks/torch_engine.cc hooks/torch_memory.cc hooks/torch_original.cc hooks/torch_scalar.cc
  hooks/torch_scopes.cc)
add_library(lull_stacks_probe MODULE stacks_probe.cc ${probe_objects})
add_library(lull_torch_probe MODULE stacks_probe.cc ${probe_objects} ${torch_objects})
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
