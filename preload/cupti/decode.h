// One activity record into one event.
#pragma once

#include <atomic>

#include "preload/abi/event.h"
#include "preload/cupti/backlog.h"
#include "preload/cupti/call_names.h"
#include "preload/cupti/clock.h"
#include "preload/cupti/types.h"

namespace lull::cupti {

// Which device a context belongs to, learned from records that name both: those of
// synchronisation name only the context. Any thread, no locks.
class ContextDevices {
 public:
  void learn(uint32_t context, uint32_t device);
  uint32_t device_of(uint32_t context) const;  // or kDeviceUnknown
  // The process sees no other: every context is of this one.
  void set_only(uint32_t device) { only_.store(device + 1, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kContexts = 256;
  std::atomic<uint32_t> devices_[kContexts] = {};  // device + 1
  std::atomic<uint32_t> only_{0};                  // device + 1; 0 = several
};

// What decoding leans on; belongs to one segment.
struct Decoder {
  char* segment;
  const Api* api;
  CallNames* names;
  ContextDevices* contexts;
  bool thread_ids;             // ApiCall::thread is a kernel thread id
  uint32_t generation = 0;     // of the segment (State)
  uint64_t begun_ns = 0;       // what ended before was of an earlier recording
  Backlog* backlog = nullptr;  // is told of calls and operations; may be null
  Round* round = nullptr;      // the one that is told now (Backlog::Report)
};

enum class Outcome {
  kEvent,
  kSkipped,     // of no interest, or of an earlier recording
  kSenseless,   // no time, ended before it began, or no name
  kUnreadable,  // its time cannot be told (clock.h)
};

// The buffer that a record lies in: requested and returned when?
struct Lifetime {
  uint64_t from;
  uint64_t to;
};

// Fills *event from `record`, of which `size` bytes can be read.
Outcome decode(const Decoder& decoder, const ClockView& clock, const Lifetime& lifetime,
               const Activity* record, size_t size, abi::Event* event);

}  // namespace lull::cupti
