// The buffers that CUPTI fills: a fixed pool, and a scratch buffer for when it is
// empty. CUPTI may crash if it is refused one (before 12.9), so it never is; what
// lands in the scratch buffer is counted and thrown away.
//
//   kFree --[CUPTI asks]--> kLent --[CUPTI returns]--> kDecoding --> kFree
//                                                        |   ^
//                                     no room in the ring v   |  a later hook
//                                                       kWaiting
//
// Any thread, no locks: whoever moves a buffer's state owns it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/cupti/types.h"

namespace lull::cupti {

inline constexpr uint32_t kBuffers = 32;
inline constexpr size_t kBufferBytes = 256 * 1024;
inline constexpr size_t kScratchBytes = 16 * 1024;

enum class BufferState : uint32_t { kFree, kLent, kDecoding, kWaiting };

struct Buffer {
  std::atomic<BufferState> state;
  std::atomic<uint64_t> lent_ns;
  // The owner's, in kDecoding and kWaiting.
  uint64_t returned_ns;
  size_t valid;
  Activity* last;  // the record decoded last; null: none yet
};

class BufferPool {
 public:
  // Maps the memory, once. False: none to be had.
  bool create();

  // Never null after create(). Sets *size.
  uint8_t* lend(uint64_t now, size_t* size);

  // The buffer of the pool that begins at `data`, now kDecoding and the caller's; or
  // nullptr: it is the scratch buffer, or none of ours.
  Buffer* take_back(uint8_t* data, size_t valid, uint64_t now);
  bool is_scratch(const uint8_t* data) const { return data == scratch_; }
  bool is_ours(const uint8_t* data) const;

  // One that waits to be decoded further, now the caller's; nullptr: there is none.
  Buffer* take_waiting();

  void keep_waiting(Buffer* buffer);
  void release(Buffer* buffer);
  uint8_t* data_of(const Buffer* buffer) const;

  // When the oldest of those that CUPTI has now was lent; UINT64_MAX: it has none.
  uint64_t oldest_lent() const;
  // CUPTI has none, nor the scratch buffer.
  bool all_back() const {
    return oldest_lent() == UINT64_MAX &&
           scratch_lent_.load(std::memory_order_relaxed) == 0;
  }
  // Takes back what CUPTI, which is no more, never returned. When the oldest of that
  // was lent; UINT64_MAX: there was none.
  uint64_t reclaim();
  // None of the returned ones is still to be decoded.
  bool all_decoded() const;

  // The scratch buffer came back; returns when the first of those who have it now got
  // it.
  uint64_t take_back_scratch();

  uint64_t lent_count() const { return lent_count_.load(std::memory_order_relaxed); }

 private:
  Buffer buffers_[kBuffers] = {};
  uint8_t* memory_ = nullptr;
  uint8_t* scratch_ = nullptr;
  std::atomic<uint64_t> lent_count_{0};
  std::atomic<uint32_t> scratch_lent_{0};
  std::atomic<uint64_t> scratch_lent_ns_{0};
};

}  // namespace lull::cupti
