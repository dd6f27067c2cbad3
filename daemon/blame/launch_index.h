// From a correlation id to the call that submitted the operation.
//
// If several calls have one id, the outermost counts: the runtime's, not the driver's
// within it. A call waits so long for its first operation (`queue`), and after an
// operation so long for the next (a graph launch has many); what is held is bounded by
// that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/blame/blame.h"

namespace lull::blame {

// What is known about a call once its first operation has come.
struct Launch {
  ApiCall call;
  uint32_t hook = 0;          // series of its hooked event, 0 = none
  uint32_t before = 0;        // series of what its thread submitted before
  bool launch_bound = false;  // it came straight from there
  uint64_t returned_ns = 0;   // end of the call and of its hooked event
  bool submitted = false;     // an operation of it has been passed
  uint64_t latest_ns = 0;     // start of its latest operation so far

  uint32_t after() const { return hook != 0 ? hook : call.series; }
};

class LaunchIndex {
 public:
  struct Limits {
    uint64_t queue_ns;     // from a call to its first operation
    uint64_t patience_ns;  // from an operation to the next, and to the call's end
    uint64_t tolerance_ns;
  };
  explicit LaunchIndex(Limits limits) : limits_(limits), heads_(kFewestHeads, kNone) {}

  void Add(const ApiCall& call);

  static constexpr uint32_t kNone = UINT32_MAX;
  // The call of an operation that started at `start_ns`, or kNone. Indices hold until
  // the next Prune.
  uint32_t Find(CorrelationId correlation, uint64_t start_ns) const;
  const ApiCall& call(uint32_t index) const { return calls_[index].call; }
  // nullptr: this is its first operation.
  Launch* launch(uint32_t index);
  Launch& AddLaunch(uint32_t index);

  // Operations that start before `time_ns` have all been passed.
  void Prune(uint64_t time_ns);
  // Forgets the calls that started before `time_ns`, whatever they wait for.
  void DropBefore(uint64_t time_ns);

  size_t size() const { return calls_.size(); }
  std::vector<uint64_t> Starts() const;

 private:
  struct Entry {
    ApiCall call;
    uint32_t next;    // of those with the same head
    uint32_t launch;  // in launches_
  };
  static constexpr size_t kFewestHeads = 1024;
  // More calls than this with one id are garbage.
  static constexpr int kMostOfOneId = 8;

  uint32_t& Head(CorrelationId correlation);
  bool Fits(const Entry& entry, uint64_t start_ns) const;
  bool Awaited(const Entry& entry, uint64_t time_ns) const;
  void Link(uint32_t index);
  template <typename Keep>
  void Rebuild(Keep keep);

  Limits limits_;
  std::vector<Entry> calls_;
  std::vector<Launch> launches_;
  std::vector<uint32_t> heads_;  // a power of two of them
  size_t kept_ = 0;              // calls that the last Rebuild left
};

}  // namespace lull::blame
