#include "preload/scopes/step_callbacks.h"

#include <string.h>

#include <cstddef>

namespace lull {
namespace {

// c10::SmallVectorBase<uint32_t>: where the elements are, how many, for how many there
// is room. Then those that lie within.
constexpr size_t kSize = 8, kCapacity = 12, kWithin = 16;
// PyTorch has room for four (kSoftLimitCallbacks).
constexpr uint32_t kMostWithin = 16;

template <typename T>
T load(const char* object, size_t offset) {
  T value;
  memcpy(&value, object + offset, sizeof value);
  return value;
}

}  // namespace

StepPairs::StepPairs(void* object, uint64_t thread, uint8_t scope)
    : object_(static_cast<char*>(object)), capacity_(0) {
  const auto capacity = load<uint32_t>(object_, kCapacity);
  if (load<const char*>(object_, 0) != object_ + kWithin || capacity == 0 ||
      capacity > kMostWithin || load<uint32_t>(object_, kSize) > capacity) {
    return;
  }
  const size_t behind = kWithin + capacity * sizeof(StepPair);
  if (load<uint64_t>(object_, behind) == thread &&
      load<uint8_t>(object_, behind + sizeof thread) == scope) {
    capacity_ = capacity;
  }
}

bool StepPairs::have(const StepPair& pair) const {
  if (!are_understood()) return false;
  const auto size = load<uint32_t>(object_, kSize);
  for (uint32_t i = 0; i < size; ++i) {
    const auto other = load<StepPair>(object_, kWithin + i * sizeof pair);
    if (other.start == pair.start && other.end == pair.end) return true;
  }
  return false;
}

bool StepPairs::add(const StepPair& pair) {
  if (!are_understood()) return false;
  const auto size = load<uint32_t>(object_, kSize);
  if (size == capacity_) return false;
  memcpy(object_ + kWithin + size * sizeof pair, &pair, sizeof pair);
  const uint32_t more = size + 1;
  memcpy(object_ + kSize, &more, sizeof more);
  return true;
}

}  // namespace lull
