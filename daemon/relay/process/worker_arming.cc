// The worker's part in arming (arming.h): commands, stretches, and signs of life.
#include <algorithm>

#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/relay/process/worker.h"

namespace lull::relay {
namespace {

// Then it begins without them.
constexpr uint64_t kSymbolsPatienceNs = 1'000'000'000;
constexpr uint64_t kTellPeriodNs = 50'000'000;
constexpr uint64_t kFirstSignNs = 500'000'000;
constexpr uint64_t kLongestSignNs = 10'000'000'000;

}  // namespace

void Worker::WakeOnceReadable(uint64_t now_ns) {
  if (wake_asked_ns_ == 0) return;
  const bool patient = now_ns < wake_asked_ns_ + kSymbolsPatienceNs;
  if (patient && targets_->symbols().IsReading()) return;
  wake_asked_ns_ = 0;
  arming_.Wake(now_ns);
}

void Worker::FollowArming(uint64_t now_ns) {
  const auto command = upstream_->TakeCommand();
  if (command) arming_.Take(*command, now_ns);
  arming_.Update(now_ns);
  // How many processes it has is looked at now and then.
  const bool tell = command || arming_.changed() || now_ns - told_ns_ >= kTellPeriodNs;
  if (arming_.changed()) {
    // The order is that of arming.h.
    if (!arming_.armed()) {
      targets_->Disarm(now_ns);
      arming_.SetEnd(MonotonicNs());
    }
    if (!SpoolStretch()) return;  // no room: again with the next pass
    arming_.Settle();
    if (arming_.armed()) {
      targets_->Arm(arming_.plan(), now_ns);
    } else {
      asleep_since_ns_ = now_ns;
      next_sign_ns_ = now_ns + kFirstSignNs;
    }
    ReportStatus(now_ns);
    LogInfo(arming_.armed() ? "the job is armed" : "the job is asleep");
  }
  if (tell) {
    told_ns_ = now_ns;
    TellArming();
  }
  ShowThatItSleeps(now_ns);
}

bool Worker::SpoolStretch() {
  auto stretch = arming_.Stretch();
  if (!stretch) return true;
  targets_->Flush(MonotonicNs());
  absl::Status status =
      targets_->Append([&](BatchBuilder& batch) { batch.AddStretch(*stretch); });
  if (!status.ok()) LogDebug(status.ToString());  // it is tried many times a second
  return status.ok();
}

void Worker::TellArming() {
  lull::v1::ArmState state;
  state.set_command(arming_.command());
  state.set_armed(arming_.armed());
  state.set_error(arming_.error());
  state.set_processes(targets_->recording());
  std::string bytes = state.SerializeAsString();
  if (bytes == told_arming_) return;
  told_arming_ = std::move(bytes);
  upstream_->TellArming(state);
}

// Counters that do not change are not sent again. But of a job that sleeps nothing else
// is heard, and what it last recorded is only complete as of a later time.
void Worker::ShowThatItSleeps(uint64_t now_ns) {
  if (arming_.armed() || now_ns < next_sign_ns_) return;
  next_sign_ns_ =
      now_ns + std::clamp(now_ns - asleep_since_ns_, kFirstSignNs, kLongestSignNs);
  targets_->RepeatCounters();
}

}  // namespace lull::relay
