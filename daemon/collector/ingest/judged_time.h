// Up to where the time of each device is judged, by this feed and by an earlier one.
// What an earlier one told is not told again.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/event.h"
#include "daemon/base/ids.h"
#include "daemon/collector/ingest/tracing_marks.h"

namespace lull::collector {

class JudgedTime {
 public:
  // Idle and traced time before it has been told; none from it on has.
  uint64_t judged_ns() const { return judged_ns_; }
  // What an earlier feed had judged.
  uint64_t restored_ns() const { return restored_ns_; }
  void Restore(uint64_t judged_ns) { judged_ns_ = restored_ns_ = judged_ns; }

  // A stretch that an earlier feed told. Coverage says up to where all of the device
  // was; the idle stretch at its end may reach beyond it, and was told as a whole.
  void AddRestored(aggregate::EventType type, DeviceId device, uint64_t end_ns);
  // Before it an earlier feed told all of the device.
  uint64_t RestoredUntil(DeviceId device) const;
  // Before it an earlier feed told all stretches of this type.
  uint64_t RestoredUntil(aggregate::EventType type, DeviceId device) const;

  // The device does something: from now on its time is to be told.
  void Await(DeviceId device) { told_.try_emplace(device, judged_ns_); }
  void Told(DeviceId device, uint64_t until_ns);
  // After a batch: all that was committed before `as_of_ns` is here.
  void Advance(const TracingMarks& marks, uint64_t as_of_ns);
  void Finish();

 private:
  uint64_t judged_ns_ = 0;
  uint64_t restored_ns_ = 0;
  absl::flat_hash_map<DeviceId, uint64_t> told_;           // by device
  absl::flat_hash_map<DeviceId, uint64_t> restored_;       // by device
  absl::flat_hash_map<DeviceId, uint64_t> restored_idle_;  // by device
};

}  // namespace lull::collector
