// How long threads of a target waited for a processor: /proc/PID/task/TID, sampled by
// the relay. The events are the relay's own; they lie in a ring of their own number,
// beside those of the target.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "daemon/relay/samples/scheduling.h"
#include "daemon/relay/samples/thread_files.h"
#include "events.pb.h"
#include "preload/abi/event.h"

namespace lull::relay {

// `ring` of what the relay adds; its positions continue over restarts of the worker.
inline constexpr uint32_t kRelayRing = 65535;
inline constexpr auto kRunDelayType =
    static_cast<abi::EventType>(lull::v1::EVENT_TYPE_RUN_DELAY);
inline constexpr auto kHostSampleType =
    static_cast<abi::EventType>(lull::v1::EVENT_TYPE_HOST_SAMPLE);

// What a look at a thread found in its counters.
struct SchedulingLook {
  uint64_t since_ns = 0;  // the look before the first that found what is new
  uint64_t at_ns = 0;
  Scheduling now;
};

// One target's threads. Its pid and tids as the relay sees them.
class RunDelaySampler {
 public:
  explicit RunDelaySampler(pid_t pid) : pid_(pid) {}

  // Whether its threads are to be looked at now. This is more often while its GPU work
  // is traced: then a delay is compared with single gaps, and otherwise only totals are
  // reported. It is also due when tracing begins or ends, so that no span lies on both
  // sides.
  bool IsDue(uint64_t now_ns, bool tracing);
  // What happened to the thread since the last call for it; nullopt: nothing, or this
  // is the first one, or the thread is gone. Not in the middle of a wait either, for up
  // to 200 ms (500 where nothing is traced): that it was pre-empted belongs to the delay, which counts from its end.
  std::optional<abi::Event> Sample(uint32_t tid, uint64_t now_ns);
  // Pure part of the above; `now` is what was read of the thread.
  std::optional<abi::Event> Advance(uint32_t tid, const Scheduling& now,
                                    uint64_t now_ns);
  // The same by a look of the host sampler, which comes ten times as often in a window
  // and so says more closely when that was: a delay counts from its end on, so that
  // what is new ended since the look before, and began as much earlier as it is long at
  // most. nullopt, too, for a thread that Sample() does not know, and for a look that
  // is behind what was read since.
  std::optional<abi::Event> Looked(uint32_t tid, const SchedulingLook& look);
  void Forget(uint32_t tid);

 private:
  struct Thread {
    Scheduling last;
    uint64_t at_ns;       // until then it is told
    uint64_t nothing_ns;  // until then there was nothing new
  };
  static std::optional<abi::Event> Told(const Thread& before, const Scheduling& now,
                                        uint64_t since_ns, uint64_t until_ns);

  const pid_t pid_;
  uint64_t asked_ns_ = 0;
  bool tracing_ = false;
  bool changes_ = false;  // tracing has just begun or ended
  std::unordered_map<uint32_t, Thread> threads_;
  std::unordered_map<uint32_t, ThreadFiles> files_;  // open: two thirds of a look
};

}  // namespace lull::relay
