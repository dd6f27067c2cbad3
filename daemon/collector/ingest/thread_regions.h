// In which region of the program idle stretches and samples lie: the innermost one of
// their thread, summed into cells (EventType::kRegionGap, kRegionSample).
//
// A region is known when it ends. It then gets everything of its thread that lies in it
// and in no region that ended before, as the regions of a thread nest. (If two do not
// nest, the one that ended first counts.) Threads of PyTorch's engine, and threads that
// open no regions, work for others: what lies in no region of their own counts for the
// main thread's region.
//
// Memory is bounded: the oldest of what waits for a region to end is kept as sums over
// a second, and a region that begins in that second gets its share of them. A collector
// that restarts has forgotten what waited for longer than its replay reaches back.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/cell.h"
#include "daemon/aggregate/event.h"
#include "daemon/base/ids.h"

namespace lull::collector {

// Not thread-safe. Times are CLOCK_MONOTONIC.
class ThreadRegions {
 public:
  // A part of a stretch or of samples, and the region that it lies in.
  struct Found {
    bool sample = false;
    uint32_t series = 0;  // of the stretch or the sample
    uint32_t stack = 0;   // of the region: its name and those around it
    uint64_t time_ns = 0;
    aggregate::Cell sum;  // as that of the series itself
  };

  // What Advance could have told by then was told by an earlier collector.
  void Restore(uint64_t judged_ns) { told_ns_ = judged_ns; }

  void set_main_thread(ThreadId tid) { main_ = tid; }
  void AddOfTheEngine(ThreadId tid);

  void AddIdle(const aggregate::Event& idle);
  void AddSample(const aggregate::Event& sample);
  // `stack` is not 0. It was begun and ended by this thread.
  void AddScope(ThreadId tid, uint64_t start_ns, uint64_t end_ns, uint32_t stack);

  // All regions that end, and all idle time and samples, before `judged_ns` are here.
  // What is found comes out once.
  std::vector<Found> Advance(uint64_t judged_ns);

  size_t size() const { return held_; }

  // A sample of a busy relay comes so much later than the gap in which it lies.
  static constexpr uint64_t kLateNs = 5'000'000'000;
  // Of 106 bytes; fresh ones of 40, with room for as many again.
  static constexpr size_t kMost = 30'000;
  // With more, threads for which nothing waits are forgotten; if that does not help,
  // new ones are left out.
  static constexpr size_t kMostThreads = 4096;

 private:
  struct Item {
    uint64_t end_ns = 0;  // of one sample: its time
    uint32_t series = 0;
    bool sample = false;
    bool merged = false;  // into an earlier one, and about to go
    aggregate::Cell sum;
  };
  using Made = std::pair<uint64_t, Item>;              // its start, as in Items
  using Items = absl::btree_multimap<uint64_t, Item>;  // by start
  struct Piece {
    uint64_t start_ns, end_ns;
    uint64_t total_ns;  // of one event
    uint64_t squares;   // of its weight; of samples alone
    uint32_t series;
    bool sample;
    bool continued;  // it is counted elsewhere
  };
  static_assert(sizeof(Piece) == 40);
  struct Thread {
    Items items;  // in no region that has ended
    // As it came, until a region asks for it: most of a program without regions is
    // merged before it would have been an item.
    std::vector<Piece> fresh;
    uint64_t longest_ns = 0;
    bool serves = false;      // of PyTorch's engine
    bool has_scopes = false;  // of its own
    bool empty() const { return items.empty() && fresh.empty(); }
  };
  struct Scope {
    uint64_t start_ns, end_ns;
    ThreadId tid;
    uint32_t stack;
  };

  Thread* ThreadOf(ThreadId tid);  // nullptr: there are too many
  void Add(ThreadId tid, const Piece& piece);
  void Apply(const Scope& scope);
  void Take(const Scope& scope, Thread& thread);
  static Item ItemOf(const Piece& piece);
  static void Sort(std::vector<Piece>& pieces);
  static void Settle(Thread& thread);
  static void Merge(Thread& thread);
  void MakeRoom();

  absl::flat_hash_map<ThreadId, Thread> threads_;
  std::deque<Scope> waiting_;
  std::vector<Found> found_;
  uint64_t told_ns_ = 0;
  ThreadId main_{};
  size_t held_ = 0;
  bool may_be_empty_ = true;  // one of threads_, so that looking for it may help
};

}  // namespace lull::collector
