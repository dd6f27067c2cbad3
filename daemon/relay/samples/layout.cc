#include "daemon/relay/samples/layout.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace lull::relay {
namespace {

constexpr int kLargestOffset = 4096;

// Fields are (offset, size). False if one of them cannot be.
bool Cover(std::initializer_list<std::pair<int, int>> fields, Span* span) {
  int low = kLargestOffset;
  int high = 0;
  for (auto [offset, size] : fields) {
    if (offset < 0 || offset >= kLargestOffset) return false;
    low = std::min(low, offset);
    high = std::max(high, offset + size);
  }
  *span = {static_cast<int16_t>(low), static_cast<uint16_t>(high - low)};
  return true;
}

}  // namespace

std::optional<FrameLayout> FrameLayout::Of(const abi::PythonLayout& layout,
                                           uint64_t code_type) {
  FrameLayout out;
  out.at = layout;
  out.code_type = code_type;
  out.chunks = layout.tstate_chunk >= 0;
  const abi::PythonLayout& at = out.at;
  const bool pointer = at.form == abi::InstructionForm::kPointer;
  const bool objects = !pointer && !out.chunks;
  if (objects) out.frame_state = at.frame_instruction + abi::kFrameStateBehindLasti;
  // An optional field counts for where a needed one is.
  const int owner = at.frame_owner >= 0 ? at.frame_owner : at.frame_code;
  const int chunk = out.chunks ? at.tstate_chunk : at.tstate_frame;
  const bool sane =
      Plausible(code_type) && at.minor >= 8 && at.minor < 256 &&
      (pointer || at.form == abi::InstructionForm::kByteOffset ||
       at.form == abi::InstructionForm::kUnitOffset) &&
      at.cframe_frame < kLargestOffset && at.frame_owner < kLargestOffset &&
      at.code_tag_mask <= 7 && at.code_bytes >= 0 &&
      Cover({{at.tstate_frame, 8}, {at.tstate_thread_id, 8}, {chunk, 8}},
            &out.thread) &&
      Cover({{at.frame_previous, 8},
             {at.frame_code, 8},
             {at.frame_instruction, pointer ? 8 : 4},
             {objects ? out.frame_state : owner, 1},
             {owner, 1}},
            &out.frame) &&
      Cover({{at.object_type, 8},
             {at.code_filename, 8},
             {at.code_name, 8},
             {at.code_line_table, 8},
             {at.code_first_line, 4}},
            &out.code) &&
      Cover({{at.str_length, 8}, {at.str_state, 4}}, &out.text) && at.bytes_size >= 0 &&
      // What is compared later is one piece: a length, and data behind it.
      at.bytes_data >= at.bytes_size + 8 && at.bytes_data < kLargestOffset &&
      at.str_ascii_size >= at.str_length + 8 && at.str_ascii_size < kLargestOffset &&
      at.str_compact_size >= at.str_length + 8 && at.str_compact_size < kLargestOffset;
  if (!sane) return std::nullopt;
  return out;
}

}  // namespace lull::relay
