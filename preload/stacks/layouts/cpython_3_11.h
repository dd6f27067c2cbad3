// CPython 3.11, x86-64 and aarch64. Source: offsetof() over the headers of 3.11.7
// (internal/pycore_frame.h, cpython/code.h,
// cpython/pystate.h).
// Checked by tests/preload/python_interpreters_integration_test.cc.
#pragma once

#include "preload/stacks/layouts/layout.h"

namespace lull {

inline constexpr CPythonLayout kCPython311 = {
    .minor = 11,
    .form = InstructionForm::kPointer,
    .code_tag_mask = 0,
    .tstate_frame = 56,
    .cframe_frame = 8,
    .tstate_thread_id = 152,
    .tstate_chunk = 296,
    .frame_previous = 48,
    .frame_code = 32,
    .frame_instruction = 56,
    .frame_owner = 69,
    .code_filename = 112,
    .code_name = 128,
    .code_first_line = 72,
    .code_line_table = 136,
    .code_bytes = 184,
    .str_length = 16,
    .str_state = 32,
    .str_ascii_size = 48,
    .str_compact_size = 72,
    .bytes_size = 16,
    .bytes_data = 32,
    .object_type = 8,
};

}  // namespace lull
