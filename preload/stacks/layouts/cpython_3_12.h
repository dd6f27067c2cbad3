// CPython 3.12, x86-64 and aarch64. Source: offsetof() over the headers of 3.12.1
// (internal/pycore_frame.h, cpython/code.h,
// cpython/pystate.h).
// Checked by tests/preload/python_interpreters_integration_test.cc.
#pragma once

#include "preload/stacks/layouts/layout.h"

namespace lull {

inline constexpr CPythonLayout kCPython312 = {
    .minor = 12,
    .form = InstructionForm::kPointer,
    .code_tag_mask = 0,
    .tstate_frame = 56,
    .cframe_frame = 0,
    .tstate_thread_id = 136,
    .tstate_chunk = 232,
    .frame_previous = 8,
    .frame_code = 0,
    .frame_instruction = 56,
    .frame_owner = 70,
    .code_filename = 112,
    .code_name = 128,
    .code_first_line = 68,
    .code_line_table = 136,
    .code_bytes = 192,
    .str_length = 16,
    .str_state = 32,
    .str_ascii_size = 40,
    .str_compact_size = 56,
    .bytes_size = 16,
    .bytes_data = 32,
    .object_type = 8,
};

}  // namespace lull
