#include "preload/hooks/communicators.h"

namespace lull {

constinit thread_local NcclThread t_nccl;

namespace {

// Taken, but not filled yet; no address of a communicator.
const char g_being_made = 0;

// The finisher of MurmurHash3 (fmix64).
uint64_t mix(uint64_t word) {
  word = (word ^ (word >> 33)) * 0xff51afd7ed558ccd;
  word = (word ^ (word >> 33)) * 0xc4ceb9fe1a85ec53;
  return word ^ (word >> 33);
}

uint64_t not_zero(uint64_t id) { return id == 0 ? 1 : id; }

}  // namespace

uint32_t Communicators::FirstOf(const void* handle) {
  return static_cast<uint32_t>(mix(reinterpret_cast<uint64_t>(handle)) % kMost);
}

Communicator* Communicators::Find(const void* handle) {
  if (handle == nullptr) return nullptr;
  uint32_t first = FirstOf(handle);
  for (uint32_t i = 0; i < kProbes; ++i) {
    Communicator& slot = slots_[(first + i) % kMost];
    if (slot.handle.load(std::memory_order_acquire) == handle) return &slot;
  }
  return nullptr;
}

void Communicators::Add(const void* handle, uint64_t id, uint32_t members) {
  if (handle == nullptr) return;
  Remove(handle);
  uint32_t first = FirstOf(handle);
  for (uint32_t i = 0; i < kProbes; ++i) {
    Communicator& slot = slots_[(first + i) % kMost];
    const void* expected = nullptr;
    if (!slot.handle.compare_exchange_strong(expected, &g_being_made,
                                             std::memory_order_acquire)) {
      continue;
    }
    if (slot.in_group) {  // a group that is open goes through it yet
      slot.handle.store(nullptr, std::memory_order_release);
      continue;
    }
    slot.id = not_zero(id);
    slot.members = members;
    slot.collectives.store(0, std::memory_order_relaxed);
    slot.splits.store(0, std::memory_order_relaxed);
    slot.handle.store(handle, std::memory_order_release);
    return;
  }
}

void Communicators::Remove(const void* handle) {
  if (Communicator* slot = Find(handle)) {
    slot->handle.store(nullptr, std::memory_order_release);
  }
}

uint64_t communicator_id(const UniqueId* ids, int count) {
  uint64_t id = 0;
  for (int i = 0; i < count; ++i) {
    for (uint64_t word : ids[i].words) id = mix(id + 0x9e3779b97f4a7c15) ^ mix(word);
  }
  return not_zero(id);
}

uint64_t split_id(uint64_t parent, uint32_t split, int color) {
  uint64_t which = uint64_t{split} << 32 | static_cast<uint32_t>(color);
  return not_zero(mix(parent) ^ mix(which + 0x9e3779b97f4a7c15));
}

// ncclDataType_t, nccl.h: int8, uint8, int32, uint32, int64, uint64, float16, float32,
// float64, bfloat16, float8e4m3, float8e5m2.
uint32_t bytes_of_type(int datatype) {
  constexpr uint8_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  bool known = datatype >= 0 && static_cast<uint32_t>(datatype) < sizeof kBytes;
  return known ? kBytes[datatype] : 0;
}

}  // namespace lull
