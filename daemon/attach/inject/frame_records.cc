#include "daemon/attach/inject/frame_records.h"

#include <algorithm>

namespace lull::inject {
namespace {

constexpr size_t kCallBytes = 7;       // the longest call instruction
constexpr size_t kPrologueBytes = 64;  // a record is pushed within these

// Whether an address is behind a call. Code that is in no file (JIT) is taken on trust:
// a wrong record does not lead to the end of a chain.
bool IsReturnAddress(const Landscape& landscape, const Arch& arch, uint64_t address) {
  const Mapping* mapping = FindMapping(landscape.maps, address - 1);
  if (mapping == nullptr || !mapping->executable) return false;
  for (const auto& object : landscape.objects) {
    if (object->image == nullptr || object->inode != mapping->inode ||
        object->device != mapping->device || object->path != mapping->path) {
      continue;
    }
    return arch.EndsWithCall(CodeBefore(*object, address));
  }
  return true;
}

}  // namespace

std::string_view CodeBefore(const Object& object, uint64_t address) {
  std::string_view code = object.image->BytesAt(address - kCallBytes - object.bias);
  return code.substr(0, std::min(code.size(), kCallBytes));
}

std::optional<FrameRecords> FrameRecords::Follow(const Landscape& landscape,
                                                 const Arch& arch, const Words& stack) {
  constexpr uint64_t kAlignment = 16;
  FrameRecords records;
  if (stack.newest_record == Words::kToBeSeen) return records;
  uint64_t at = stack.newest_record;
  uint64_t lowest = stack.sp;
  do {
    if (at < lowest || at % kAlignment != 0) return std::nullopt;
    const size_t index = (at - stack.sp) / sizeof(uint64_t);
    if (index + 1 >= stack.words.size()) {
      // Far above; but a chain of nothing is none.
      if (records.live_.empty()) return std::nullopt;
      return records;
    }
    const uint64_t address = stack.words[index + 1] & arch.AddressMask();
    lowest = at + kAlignment;
    at = stack.words[index];
    // A thread's first function has no caller.
    const bool first = at == 0 && address == 0;
    if (!first && !IsReturnAddress(landscape, arch, address)) return std::nullopt;
    records.live_.push_back(index + 1);
  } while (at != 0);
  return records;
}

bool FrameRecords::IsLeftBehind(const Arch& arch, const Object& object,
                                uint64_t address, size_t index) const {
  if (std::binary_search(live_.begin(), live_.end(), index)) return false;
  const uint64_t called = arch.CalledDirectly(CodeBefore(object, address), address);
  if (called == 0) return false;
  std::string_view code = object.image->BytesAt(called - object.bias);
  return arch.KeepsRecord(code.substr(0, kPrologueBytes));
}

}  // namespace lull::inject
