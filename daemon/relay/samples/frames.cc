#include "daemon/relay/samples/frames.h"

#include <stdint.h>

namespace lull::relay {
namespace {

// PyFrameState's owner of a frame that lies in its generator, from 3.11 on.
constexpr uint8_t kOwnerGenerator = 1;

}  // namespace

bool DecodeFrame(const FrameLayout& layout, const char* bytes, uint64_t address,
                 DecodedFrame* out) {
  *out = {};
  const abi::PythonLayout& at = layout.at;
  const int low = layout.frame.low;
  out->previous = LoadAt<uint64_t>(bytes, at.frame_previous - low);
  if (at.frame_owner >= 0) {
    const auto owner = LoadAt<uint8_t>(bytes, at.frame_owner - low);
    out->foreign = owner >= abi::kFirstForeignOwner;
    out->in_generator = owner == kOwnerGenerator;
  }
  if (out->foreign) return true;
  if (layout.frame_state >= 0) {
    const auto state = LoadAt<uint8_t>(bytes, layout.frame_state - low);
    out->running = (state != 0) == (at.form == abi::InstructionForm::kByteOffset);
  }
  const uint64_t code = LoadAt<uint64_t>(bytes, at.frame_code - low) &
                        ~static_cast<uint64_t>(at.code_tag_mask);
  if (!Plausible(code)) return false;
  int64_t lasti = 0;
  switch (at.form) {
    case abi::InstructionForm::kByteOffset:
      lasti = LoadAt<int32_t>(bytes, at.frame_instruction - low);
      break;
    case abi::InstructionForm::kUnitOffset:
      lasti = int64_t{2} * LoadAt<int32_t>(bytes, at.frame_instruction - low);
      break;
    case abi::InstructionForm::kPointer:
      lasti = static_cast<int64_t>(LoadAt<uint64_t>(bytes, at.frame_instruction - low) -
                                   OffsetBy(code, at.code_bytes));
      break;
  }
  out->seen = {address, code,
               lasti < 0 || lasti > INT32_MAX ? -1 : static_cast<int32_t>(lasti), 0};
  return true;
}

}  // namespace lull::relay
