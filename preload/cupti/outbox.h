// What the tracer has to tell, in order, until the ring of whoever comes by has room.
#pragma once

#include <cstdint>

#include "preload/abi/event.h"
#include "preload/cupti/buffers.h"
#include "preload/cupti/delivery.h"

namespace lull::cupti {

// Used under the tracer's lock.
class Outbox {
 public:
  // False: it is full, and the event is gone.
  bool add(const abi::Event& event) {
    if (count_ == kMost) return false;
    events_[count_++] = event;
    return true;
  }
  // Every operation that ended before it has been returned. It is told last, when
  // nothing that it covers is still to come.
  void set_mark(uint64_t time_ns) { mark_ns_ = time_ns; }
  void forget() {
    count_ = 0;
    mark_ns_ = 0;
  }
  bool empty() const { return count_ == 0; }  // but for a mark

  // Puts what there is room for into the calling thread's ring; a mark once all of
  // `pool` that was returned is decoded.
  void send(char* segment, Losses* losses, const BufferPool& pool);

 private:
  static constexpr uint32_t kMost = 128;
  abi::Event events_[kMost] = {};
  uint32_t count_ = 0;
  uint64_t mark_ns_ = 0;  // 0: none
};

}  // namespace lull::cupti
