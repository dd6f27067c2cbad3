// What a target counts: how it stands now, and when that is told.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/segment_reader.h"
#include "daemon/relay/read/target_rings.h"
#include "events.pb.h"

namespace lull::relay {

// What the segment and its rings say. `corrupt`: the segment is, so that heads of rings
// may say anything.
lull::v1::ProcessCounters CountersOf(const SegmentReader& segment,
                                     const TargetRings& rings, bool corrupt);

// Tells counters twice a second at most, and only when they changed.
class CounterReport {
 public:
  bool IsDue(uint64_t now_ns) const;
  // `as_of_ns`: all that was committed before it has been read.
  void Add(lull::v1::ProcessCounters counters, uint64_t now_ns, uint64_t as_of_ns,
           BatchBuilder* batch);
  // The next Add() adds them though nothing has changed.
  void Repeat() { sent_.clear(); }
  // The batch is in the spool, or found no room there.
  void Commit() { committed_ = sent_; }
  void Drop();

 private:
  std::string sent_;  // last told, without the time
  std::string committed_;
  uint64_t at_ns_ = 0;
};

}  // namespace lull::relay
