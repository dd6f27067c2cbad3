// Whether a job is to record now: `lull run --dormant`, `lull arm`, `lull disarm`.
// Pure: time comes from the caller.
//
//             a command: arm [for a time] [with a GPU plan]
//   asleep ----------------------------------------------------> armed
//      ^                                                          | | a command: arm
//      |   a command: disarm; or the time is up                   | +--> armed, as the
//      +----------------------------------------------------------+      new one says
//
// A stretch is a span of time in which the job is armed. It has a number, and says all
// that a successor of this relay must know to go on (SpoolState keeps it).
//
// The caller makes a change in an order in which nothing is recorded outside of a
// stretch: on waking up it spools Stretch() first and then arms the targets; on falling
// asleep it disarms them and then spools. Then it calls Settle().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/relay/control/gpu_plan.h"
#include "ingest.pb.h"

namespace lull::relay {

class Arming {
 public:
  // How the job was started. `job_start_ns`: when its first stretch began, if it was
  // not started dormant.
  Arming(bool dormant, uint64_t job_start_ns, GpuPlan plan);

  // Goes on where a relay left that has spooled `last`.
  void Resume(const lull::v1::ArmedStretch& last);

  // Takes a command, unless it has been taken already. A plan that cannot be read has
  // no effect but error().
  void Take(const lull::v1::ArmCommand& command, uint64_t now_ns);
  // Whether the time is up. Call it often.
  void Update(uint64_t now_ns);
  // Arms the job, with the plan in force. Does nothing if it is armed.
  void Wake(uint64_t now_ns);
  // Puts the job to sleep, as when its time is up.
  void Sleep(uint64_t now_ns);

  bool armed() const { return armed_; }
  const GpuPlan& plan() const { return plan_; }  // in force, or that of the last time
  uint64_t command() const { return command_; }
  const std::string& error() const { return error_; }

  // Something has changed that is not settled yet.
  bool changed() const { return changed_; }
  // The stretch that has begun, changed or ended; none for a job that was never armed.
  std::optional<lull::v1::ArmedStretch> Stretch() const;
  // `slept_ns`: when the last target was disarmed, if that is what changed.
  void SetEnd(uint64_t slept_ns);
  void Settle() { changed_ = false; }

 private:
  const GpuPlan first_plan_;
  GpuPlan plan_;
  bool armed_;
  bool changed_ = false;
  uint64_t number_;  // of the last stretch, 0: none yet
  uint64_t start_ns_;
  uint64_t end_ns_ = 0;
  uint64_t until_ns_ = 0;  // 0: until told
  uint64_t command_ = 0;   // the last one
  std::string error_;
};

// Reads a plan from the wire. INVALID_ARGUMENT for a mode or schedule that does not
// exist.
absl::StatusOr<GpuPlan> PlanOf(const lull::v1::ArmCommand::Gpu& gpu);
lull::v1::ArmCommand::Gpu GpuOf(const GpuPlan& plan);

}  // namespace lull::relay
