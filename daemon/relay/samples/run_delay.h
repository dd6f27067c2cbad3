// How long threads of a target waited for a processor: /proc/PID/task/TID, sampled by
// the relay. The events are the relay's own; they lie in a ring of their own number,
// beside those of the target.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "absl/strings/string_view.h"
#include "daemon/base/unique_fd.h"
#include "events.pb.h"
#include "preload/abi/event.h"

namespace lull::relay {

// `ring` of what the relay adds; its positions continue over restarts of the worker.
inline constexpr uint32_t kRelayRing = 65535;
inline constexpr auto kRunDelayType =
    static_cast<abi::EventType>(lull::v1::EVENT_TYPE_RUN_DELAY);
inline constexpr auto kHostSampleType =
    static_cast<abi::EventType>(lull::v1::EVENT_TYPE_HOST_SAMPLE);

struct Scheduling {
  uint64_t delay_ns = 0;     // ready to run, without a processor
  uint64_t slices = 0;       // times that it got one
  uint64_t involuntary = 0;  // times that it was pre-empted
  int processor = -1;        // where it runs, or last ran
  uint64_t ran_ns = 0;       // on processors, as of the last tick of a clock

  bool operator==(const Scheduling&) const = default;
};

// The files' texts: schedstat, field 39 of stat, nonvoluntary_ctxt_switches of status.
bool ParseSchedstat(absl::string_view text, Scheduling* scheduling);
bool ParseProcessor(absl::string_view stat, Scheduling* scheduling);
bool ParseSwitches(absl::string_view status, Scheduling* scheduling);

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
  // is the first one, or the thread is gone.
  std::optional<abi::Event> Sample(uint32_t tid, uint64_t now_ns);
  // Pure part of the above; `now` is what was read of the thread.
  std::optional<abi::Event> Advance(uint32_t tid, const Scheduling& now,
                                    uint64_t now_ns);
  void Forget(uint32_t tid);

 private:
  struct Thread {
    Scheduling last;
    uint64_t at_ns;
  };
  // Kept open: opening them is two thirds of what a look costs. They stay those of the
  // thread, whoever gets its number afterwards.
  struct Files {
    UniqueFd schedstat, stat, status;
  };
  // The delay and the slices alone; nullopt: it is gone.
  std::optional<Scheduling> ReadDelay(uint32_t tid);
  std::optional<Scheduling> ReadAll(uint32_t tid, Scheduling delay) const;

  const pid_t pid_;
  uint64_t asked_ns_ = 0;
  bool tracing_ = false;
  std::unordered_map<uint32_t, Thread> threads_;
  std::unordered_map<uint32_t, Files> files_;
};

}  // namespace lull::relay
