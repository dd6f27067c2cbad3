// The inside of the engine: takes operations and marks in the order of time, and asks
// the parts that know about calls, threads and streams.
//
//   sweep.cc   operations and marks up to a limit: submissions, gaps, busy time
//   tell.cc    what is final by then: run queue, coverage, syncs; what can be forgotten
//   engine.cc  input, and how far the limit goes
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "daemon/base/settled.h"
#include "daemon/blame/blame.h"
#include "daemon/blame/device.h"
#include "daemon/blame/gap_judge.h"
#include "daemon/blame/instant.h"
#include "daemon/blame/launch_index.h"
#include "daemon/blame/operation_order.h"
#include "daemon/blame/stream_order.h"
#include "daemon/blame/thread_timeline.h"
#include "daemon/blame/traced_time.h"
#include "daemon/blame/union.h"

namespace lull::blame {

class Engine::Impl {
 public:
  Impl(Options options, Sink& sink);

  void Add(const Operation& operation);
  void Add(const ApiCall& call) { calls_.Add(Sound(call)); }
  void Add(const StreamWait& wait) { streams_.Add(wait); }
  void Add(const HostEvent& event);
  void Add(const RunDelay& delay);
  void Mark(uint64_t time_ns, bool on);
  void Lost(uint64_t start_ns, uint64_t end_ns) { lost_.Add(start_ns, end_ns); }
  void Advance(uint64_t host_ns, uint64_t gpu_ns);
  void Finish();

  const Counters& counters() const { return counters_; }
  size_t pending() const;

 private:
  // An operation of the group that is being passed: all start at the same time.
  struct Passing {
    Device* device = nullptr;  // nullptr: there are too many
    uint32_t launch = LaunchIndex::kNone;
    uint64_t start_ns = 0;  // without what lies in judged time
    bool runs = false;      // something is left
  };

  // sweep.cc
  void Sweep(uint64_t limit_ns);
  void PassMark();
  bool PassGroup();
  bool Resolve(const Operation& operation, Passing* passing);
  void MeetLaunch(uint32_t index);
  void MeetDevice(const Operation& operation, Passing* passing);
  uint64_t Judged(const Device& device) const;
  void CloseGaps();
  bool EndsGapBefore(size_t a, int64_t b);
  void CloseGap(Device& device, size_t ender);
  void EndGaps(uint64_t end_ns);
  void EndGap(Device& device, uint64_t end_ns);
  bool KnowsPredecessor(const Device& device) const;
  Suspect SuspectOf(ThreadId tid, uint64_t time_ns);
  void GiveUp(Device& device, uint64_t time_ns);
  void GiveUpOldest(Device& device, uint64_t end_ns);
  void JudgeInto(Device& device, const Gap& gap);
  void PassOperation(const Operation& operation, const Passing& passing);
  void Occupy(Device& device, const Operation& operation, const Passing& passing,
              const Launch* launch);
  Launch* LaunchOf(const Passing& passing) {
    return passing.launch == LaunchIndex::kNone ? nullptr
                                                : calls_.launch(passing.launch);
  }

  // tell.cc
  void TellAll(bool all);
  void TellSyncs();
  void Prune();
  void DropBefore(uint64_t states_ns, uint64_t hooks_ns, uint64_t history_ns);
  void Overflow();
  uint64_t MedianTime() const;

  void Settle();
  ThreadTimeline& ThreadOf(ThreadId tid);

  const Options options_;
  Sink& sink_;
  Counters counters_;
  uint64_t host_ns_ = 0;
  uint64_t gpu_ns_ = 0;
  uint64_t passed_ns_ = 0;  // all that starts before it has been passed

  Settled<Operation, OperationOrder> operations_;
  LaunchIndex calls_;
  StreamOrder streams_;
  std::unordered_map<ThreadId, ThreadTimeline> threads_;
  ThreadId last_tid_{};
  ThreadTimeline* last_thread_ = nullptr;
  Settled<HostEvent, SyncOrder> syncs_;
  RunDelays delays_;
  TracedTime traced_;
  Union lost_;
  Union busy_;                  // of any device
  uint64_t busy_reach_ns_ = 0;  // end of the last operation
  uint64_t busy_from_ns_ = 0;   // busy_ is complete from here on
  size_t history_kept_ = 0;     // stretches of the past when they were pruned last
  std::map<DeviceId, Device> devices_;

  std::vector<Passing> passing_;
  std::vector<Part> parts_;
};

}  // namespace lull::blame
