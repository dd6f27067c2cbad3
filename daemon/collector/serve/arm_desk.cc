#include "daemon/collector/serve/arm_desk.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lull::collector {
namespace {

absl::Status NotConnected() {
  return absl::FailedPreconditionError(
      "the job's relay is not connected to this collector now; is the job still "
      "running, and does its host reach the collector?");
}

std::chrono::steady_clock::time_point In(absl::Duration time) {
  return std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(time);
}

}  // namespace

ArmDesk::Desk* ArmDesk::Find(const std::string& job) {
  auto it = desks_.find(job);
  return it == desks_.end() ? nullptr : &it->second;
}

void ArmDesk::Hand(Desk& desk) {
  std::shared_ptr<CommandListener> relay = desk.relay.lock();
  if (relay != nullptr && desk.wanted) relay->SendCommand(*desk.wanted);
}

void ArmDesk::Arrived(const std::string& job,
                      const std::shared_ptr<CommandListener>& relay,
                      const std::optional<lull::v1::ArmState>& state) {
  MutexLock lock(mutex_);
  Desk& desk = desks_[job];
  desk.relay = relay;
  desk.relay_id = relay.get();
  desk.takes_commands = state.has_value();
  desk.state = state.value_or(lull::v1::ArmState());
  if (desk.wanted && desk.state.command() >= desk.wanted->number()) desk.wanted.reset();
  Hand(desk);
  changed_.notify_all();
}

void ArmDesk::Reported(const std::string& job, const CommandListener* relay,
                       const lull::v1::ArmState& state) {
  MutexLock lock(mutex_);
  Desk* desk = Find(job);
  if (desk == nullptr || desk->relay_id != relay) return;
  desk->state = state;
  if (desk->wanted && state.command() >= desk->wanted->number()) desk->wanted.reset();
  changed_.notify_all();
}

void ArmDesk::Left(const std::string& job, const CommandListener* relay) {
  MutexLock lock(mutex_);
  Desk* desk = Find(job);
  if (stopping_ || desk == nullptr || desk->relay_id != relay) return;
  desk->relay_id = nullptr;
  desk->relay.reset();
  if (!desk->wanted) desks_.erase(job);
  changed_.notify_all();
}

bool ArmDesk::HasRelay(const std::string& job) {
  MutexLock lock(mutex_);
  const Desk* desk = Find(job);
  return desk != nullptr && desk->relay_id != nullptr;
}

void ArmDesk::JobEnded(const std::string& job) {
  MutexLock lock(mutex_);
  desks_.erase(job);
  changed_.notify_all();
}

void ArmDesk::Stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

ArmDesk::Desk* ArmDesk::WaitForRelay(MutexLock& lock, const std::string& job) {
  Desk* desk = nullptr;
  changed_.wait_until(
      lock.native(), In(connect_), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        desk = Find(job);
        return stopping_ || (desk != nullptr && desk->relay_id != nullptr);
      });
  return desk != nullptr && desk->relay_id != nullptr ? desk : nullptr;
}

absl::StatusOr<lull::v1::ArmState> ArmDesk::Order(const std::string& job,
                                                  lull::v1::ArmCommand command) {
  MutexLock lock(mutex_);
  Desk* desk = WaitForRelay(lock, job);
  if (stopping_) return absl::UnavailableError("the collector stops");
  if (desk == nullptr) return NotConnected();
  if (!desk->takes_commands) {
    return absl::FailedPreconditionError(
        "the job was started by a lull that cannot be told to arm or disarm it");
  }
  const uint64_t number =
      1 + std::max(desk->state.command(), desk->wanted ? desk->wanted->number() : 0);
  command.set_number(number);
  desk->wanted = std::move(command);
  Hand(*desk);
  bool told = changed_.wait_until(
      lock.native(), In(confirm_), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        desk = Find(job);
        return stopping_ || desk == nullptr || desk->state.command() >= number;
      });
  if (stopping_) return absl::UnavailableError("the collector stops");
  if (desk == nullptr) return absl::FailedPreconditionError("the job has just ended");
  if (!told) {
    return absl::AbortedError(absl::StrCat(
        "the job's relay has not confirmed within ", absl::FormatDuration(confirm_),
        "; what was asked for takes effect once it answers again"));
  }
  if (!desk->state.error().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job's relay refuses: ", desk->state.error()));
  }
  return desk->state;
}

}  // namespace lull::collector
