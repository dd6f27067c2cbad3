// What one host thread did, as far as blame asks: in which state it was at an
// instant, which hooked event a call of it belongs to, what it submitted last.
//
// Times given to queries never go far back: what lies before DropBefore is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/base/settled.h"
#include "daemon/blame/blame.h"

namespace lull::blame {

// A stretch in which nothing changes: the state that counts, and the sync around it.
// A sync of a thread; series 0: none.
struct SyncCall {
  uint32_t series = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  bool operator==(const SyncCall&) const = default;
};

struct ThreadState {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  Cause cause = Cause::kUnknown;  // kGc..kSync
  uint32_t culprit = 0;
  SyncCall sync;          // the innermost
  bool handover = false;  // a host wait for another thread
};

// An API call that submitted work, or a hooked one that does.
struct Submitted {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t series = 0;
  // When the program went on: the end of the hook around it, where there is one. CUPTI
  // takes the end of a call before it does its own work.
  uint64_t returned_ns = 0;
};

class ThreadTimeline {
 public:
  // False: it starts in time that was asked for already.
  bool Add(const HostEvent& event);
  void AddSubmission(const Submitted& call);
  void Settle();

  // The hooked launch, copy or sync that wraps [start, end), or the nearest within
  // the tolerance; nullptr: none. Holds until the next change.
  struct Hook {
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t reach_ns;  // the latest end of this and those before it
    uint32_t series;
    bool launch;
  };
  const Hook* HookOf(uint64_t start_ns, uint64_t end_ns, uint64_t tolerance_ns) const;

  // The last submission or hooked launch, other than `own`, that ended by `time_ns`.
  // False: there is none.
  bool LastBefore(uint64_t time_ns, const Hook* own, Submitted* last) const;

  // Makes states up to `time_ns` for the queries below.
  void Ask(uint64_t time_ns) {
    Flatten(time_ns);
    asked_ns_ = std::max(asked_ns_, time_ns);
  }
  // Calls visit(state) for those that overlap [start, end), in order.
  template <typename Visit>
  void VisitStates(uint64_t start_ns, uint64_t end_ns, Visit visit) const {
    size_t at =
        states_.CountWhile([&](const ThreadState& s) { return s.end_ns <= start_ns; });
    for (; at < states_.size() && states_[at].start_ns < end_ns; ++at) {
      visit(states_[at]);
    }
  }
  // The sync in which the thread was at that instant, or which it had left less than
  // `slack_ns` before.
  SyncCall SyncAt(uint64_t time_ns, uint64_t slack_ns) const;

  // Forgets states that ended by `states_ns`, hooks and submissions by `hooks_ns` or
  // when more than the device's queue can hold came after them; but not the last.
  void DropBefore(uint64_t states_ns, uint64_t hooks_ns);

  size_t size() const {
    return hooks_.size() + events_.size() + active_.size() + states_.size() +
           submitted_.size();
  }
  void AppendTimes(std::vector<uint64_t>* times) const;

 private:
  struct HookOrder {
    bool operator()(const Hook& a, const Hook& b) const;
  };
  // An event, of which what lies before flat_ns_ is cut off.
  struct Rest {
    HostEvent event;
    uint64_t whole_start_ns;  // of the event
  };
  struct EventOrder {
    bool operator()(const Rest& a, const Rest& b) const;
  };
  void Flatten(uint64_t time_ns);
  void AddState(uint64_t start_ns, uint64_t end_ns);

  Settled<Hook, HookOrder> hooks_;
  Settled<Rest, EventOrder> events_;  // not yet in states_
  std::vector<Rest> active_;          // reach beyond flat_ns_, by start
  struct StateOrder {
    bool operator()(const ThreadState& a, const ThreadState& b) const {
      return a.start_ns < b.start_ns;
    }
  };
  Settled<ThreadState, StateOrder> states_;
  uint64_t flat_ns_ = 0;   // states_ is complete up to here
  uint64_t asked_ns_ = 0;  // and was asked for up to here
  std::vector<Submitted> submitted_;
  Submitted dropped_launch_;  // the last hooked launch that was dropped
  bool has_dropped_ = false;
};

}  // namespace lull::blame
