// CPython 3.8, x86-64 and aarch64. Source: offsetof() over the headers of 3.8.18
// (frameobject.h, code.h, cpython/unicodeobject.h, internal/pycore_pystate.h).
// Checked by tests/preload/python_interpreters_integration_test.cc.
#pragma once

#include "preload/stacks/layouts/layout.h"

namespace lull {

inline constexpr CPythonLayout kCPython38 = {
    .minor = 8,
    .form = InstructionForm::kByteOffset,
    .code_tag_mask = 0,
    .tstate_frame = 24,
    .cframe_frame = -1,
    .tstate_thread_id = 176,
    .tstate_chunk = -1,
    .frame_previous = 24,
    .frame_code = 32,
    .frame_instruction = 104,
    .frame_owner = -1,
    .code_filename = 104,
    .code_name = 112,
    .code_first_line = 40,
    .code_line_table = 120,
    .code_bytes = 0,
    .str_length = 16,
    .str_state = 32,
    .str_ascii_size = 48,
    .str_compact_size = 72,
    .bytes_size = 16,
    .bytes_data = 32,
    .object_type = 8,
    .runtime_finishing = 600,
};

}  // namespace lull
