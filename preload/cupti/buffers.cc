#include "preload/cupti/buffers.h"

#include <sys/mman.h>

namespace lull::cupti {

bool BufferPool::create() {
  if (memory_ != nullptr) return true;
  constexpr size_t kSize = kBuffers * kBufferBytes + kScratchBytes;
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  madvise(memory, kSize, MADV_DONTDUMP);  // core dumps stay the target's own
  memory_ = static_cast<uint8_t*>(memory);
  scratch_ = memory_ + kBuffers * kBufferBytes;
  return true;
}

// The first free one: as few pages as possible are ever touched.
uint8_t* BufferPool::lend(uint64_t now, size_t* size) {
  lent_count_.fetch_add(1, std::memory_order_relaxed);
  for (Buffer& buffer : buffers_) {
    BufferState free = BufferState::kFree;
    if (buffer.state.load(std::memory_order_relaxed) != free) continue;
    // Pairs with the release in release(): the last reader is done.
    if (!buffer.state.compare_exchange_strong(free, BufferState::kLent,
                                              std::memory_order_acquire)) {
      continue;
    }
    buffer.lent_ns.store(now, std::memory_order_release);
    *size = kBufferBytes;
    return data_of(&buffer);
  }
  if (scratch_lent_.fetch_add(1, std::memory_order_relaxed) == 0) {
    scratch_lent_ns_.store(now, std::memory_order_relaxed);
  }
  *size = kScratchBytes;
  return scratch_;
}

Buffer* BufferPool::take_back(uint8_t* data, size_t valid, uint64_t now) {
  if (data < memory_ || data >= scratch_) return nullptr;
  auto offset = static_cast<size_t>(data - memory_);
  if (offset % kBufferBytes != 0) return nullptr;
  Buffer* buffer = &buffers_[offset / kBufferBytes];
  BufferState lent = BufferState::kLent;
  if (!buffer->state.compare_exchange_strong(lent, BufferState::kDecoding,
                                             std::memory_order_acquire)) {
    return nullptr;
  }
  buffer->returned_ns = now;
  buffer->valid = valid < kBufferBytes ? valid : kBufferBytes;
  buffer->last = nullptr;
  return buffer;
}

uint64_t BufferPool::take_back_scratch() {
  uint64_t since = scratch_lent_ns_.load(std::memory_order_relaxed);
  scratch_lent_.fetch_sub(1, std::memory_order_relaxed);
  return since;
}

uint64_t BufferPool::reclaim() {
  uint64_t oldest = oldest_lent();
  for (Buffer& buffer : buffers_) {
    BufferState lent = BufferState::kLent;
    buffer.state.compare_exchange_strong(lent, BufferState::kFree);
  }
  if (scratch_lent_.exchange(0, std::memory_order_relaxed) == 0) return oldest;
  uint64_t scratch = scratch_lent_ns_.load(std::memory_order_relaxed);
  return scratch < oldest ? scratch : oldest;
}

bool BufferPool::is_ours(const uint8_t* data) const {
  return memory_ != nullptr && data >= memory_ && data < scratch_ + kScratchBytes;
}

Buffer* BufferPool::take_waiting() {
  for (Buffer& buffer : buffers_) {
    BufferState waiting = BufferState::kWaiting;
    if (buffer.state.load(std::memory_order_relaxed) == waiting &&
        buffer.state.compare_exchange_strong(waiting, BufferState::kDecoding,
                                             std::memory_order_acquire)) {
      return &buffer;
    }
  }
  return nullptr;
}

// Both pair with the acquires of whoever takes the buffer next.
void BufferPool::keep_waiting(Buffer* buffer) {
  buffer->state.store(BufferState::kWaiting, std::memory_order_release);
}
void BufferPool::release(Buffer* buffer) {
  buffer->state.store(BufferState::kFree, std::memory_order_release);
}

uint8_t* BufferPool::data_of(const Buffer* buffer) const {
  return memory_ + static_cast<size_t>(buffer - buffers_) * kBufferBytes;
}

uint64_t BufferPool::oldest_lent() const {
  uint64_t oldest = UINT64_MAX;
  for (const Buffer& buffer : buffers_) {
    if (buffer.state.load(std::memory_order_acquire) != BufferState::kLent) continue;
    uint64_t lent = buffer.lent_ns.load(std::memory_order_acquire);
    if (lent < oldest) oldest = lent;
  }
  return oldest;
}

bool BufferPool::all_decoded() const {
  for (const Buffer& buffer : buffers_) {
    BufferState state = buffer.state.load(std::memory_order_acquire);
    if (state == BufferState::kDecoding || state == BufferState::kWaiting) return false;
  }
  return true;
}

}  // namespace lull::cupti
