#include "daemon/relay/read/target_set.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/relay/read/process_facts.h"

namespace lull::relay {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
// A batch waits for company, so that a quiet job does not send one a millisecond;
// but never until a ring is near its end.
constexpr uint64_t kMaxBatchAgeNs = 500 * kMillisecond;
constexpr size_t kMaxBatchEvents = 16 * 1024;
// 24 chunks, which stay in a cache. With half as many the collector took 6.1 and 6.4 %
// of a processor for tests/bench/trainer.py, in place of 5.1 and 5.6 %.
constexpr uint64_t kMaxBacklog = 4096;
constexpr size_t kBusyEvents = 4096;  // in one pass: come back sooner
constexpr uint64_t kGovernPeriodNs = 100 * kMillisecond;
// DataLoader workers have no rings of their own that might get full.
constexpr uint64_t kLoadersPeriodNs = 200 * kMillisecond;
constexpr uint64_t kCountersOnlyPeriodNs = 1000 * kMillisecond;

}  // namespace

TargetSet::TargetSet(const RelayOptions& options, Spool& spool)
    : options_(options),
      spool_(spool),
      symbols_(options.spool_directory),
      sources_(options.attached ? std::nullopt
                                : std::optional(options.job.start_realtime_ns())) {
  if (!options_.job.settings().no_host_samples()) {
    sampler_ = std::make_unique<HostSampler>(std::random_device{}());
  }
}

TargetSet::Added TargetSet::Add(v1::ProcessInfo info, UniqueFd memfd, UniqueFd pidfd,
                                UniqueFd memory, bool armed, const GpuPlan& plan) {
  const uint64_t key = info.key();
  const bool loader = info.worker_of() != 0;
  if (loader) info.set_worker_of(WhoseWorker(info.parent_pid()));
  if (loader && info.worker_of() == 0) return Added::kNotWanted;
  TargetOptions options{options_.job.settings(),
                        loader ? nullptr : &symbols_,
                        plan,
                        gpu_clock_,
                        armed,
                        sampler_.get(),
                        std::make_shared<const UniqueFd>(std::move(memory)),
                        options_.attached};
  const int watched = pidfd.get();
  auto target = Target::Open(std::move(info), std::move(memfd), std::move(pidfd),
                             options, &spool_.state());
  if (!target.ok()) {
    LogError(target.status().ToString());
    return Added::kFailed;
  }
  ends_.Add(watched);
  if (!loader) {
    // What an attach finds has long loaded its libraries; no stack is asked for yet.
    symbols_.Watch(key, (*target)->pid(), options.memory, options_.attached);
  }
  if (!options_.job.settings().no_source()) {
    sources_.Watch(key, (*target)->pid());
  }
  targets_[key] = *std::move(target);
  return Added::kDone;
}

// The key of the nearest target among the process and its ancestors: a worker may be
// the child of a fork server.
uint64_t TargetSet::WhoseWorker(uint32_t pid) const {
  constexpr int kGenerations = 4;
  for (int i = 0; i < kGenerations && pid > 1; ++i) {
    for (const auto& [key, target] : targets_) {
      if (target->pid() == static_cast<pid_t>(pid) && !target->ended() &&
          target->worker_of() == 0) {
        return key;
      }
    }
    pid = ParentOf(static_cast<pid_t>(pid));
  }
  return 0;
}

void TargetSet::EndImage(uint64_t key, uint64_t by_ns) {
  auto target = targets_.find(key);
  if (target != targets_.end()) target->second->SetImageEnded(by_ns);
}

void TargetSet::EndImagesOf(pid_t pid, uint64_t by_ns) {
  for (auto& [key, target] : targets_) {
    if (target->pid() == pid && pid != 0) target->SetImageEnded(by_ns);
  }
}

bool TargetSet::ReadAll(uint64_t now_ns) {
  size_t before = batch_.events();
  bool overflowed = false;
  // Asked before the reading: what was committed before the end is then read.
  const bool ends = ends_.Any();
  const bool loaders = now_ns - loaders_read_ns_ >= kLoadersPeriodNs;
  if (loaders) loaders_read_ns_ = now_ns;
  for (auto& [key, target] : targets_) {
    target->CheckEnded(ends);
    if (target->worker_of() != 0 && !loaders) continue;
    while (!target->Read(&batch_)) {
      Flush(now_ns);
      overflowed = true;
    }
  }
  return overflowed || batch_.events() > before + kBusyEvents;
}

bool TargetSet::IsTracing() const {
  return std::any_of(targets_.begin(), targets_.end(),
                     [](const auto& target) { return target.second->IsTracing(); });
}

void TargetSet::Control(uint64_t now_ns) {
  const bool govern = now_ns - governed_ns_ >= kGovernPeriodNs;
  if (govern) governed_ns_ = now_ns;
  for (auto& [key, target] : targets_) {
    if (target->corrupt()) continue;
    // A worker is looked at as often as the process that it loads for.
    if (target->worker_of() != 0) {
      auto owner = targets_.find(target->worker_of());
      const Target& traced = owner == targets_.end() ? *target : *owner->second;
      target->FollowSamples(now_ns, traced.IsTracing());
      continue;
    }
    if (govern) {
      target->Govern(now_ns);
      target->FreeRings();
    }
    target->GoOnIfUnread(now_ns);
    target->Drive(now_ns);
    target->FollowSamples(now_ns, target->IsTracing());
    target->FollowRunDelay(&batch_, now_ns);
  }
}

void TargetSet::ReleaseEnded(uint64_t now_ns,
                             absl::FunctionRef<void(uint64_t)> released) {
  ForgetSymbols();
  std::vector<uint64_t> done;
  for (auto& [key, target] : targets_) {
    if (!target->ended()) continue;
    // Whatever came between the reading and the end of the process.
    while (!target->Read(&batch_)) Flush(now_ns);
    target->AddEnd(&batch_, now_ns);
    done.push_back(key);
  }
  if (done.empty()) return;
  Flush(now_ns);
  for (uint64_t key : done) {
    Target& target = *targets_[key];
    if (!target.end_is_spooled()) continue;  // no room: again with the next pass
    of_gone_.corrupt += target.corrupt() ? 1 : 0;
    of_gone_.events_read += target.events_read();
    of_gone_.events_lost += target.events_lost();
    named_later_.emplace_back(spool_.last_sequence(), key);
    released(key);
    ends_.Remove(target.pidfd());
    sources_.Forget(key);
    targets_.erase(key);
  }
}

void TargetSet::ForgetSymbols() {
  while (!named_later_.empty() && spool_.acknowledged() >= named_later_.front().first) {
    symbols_.Forget(named_later_.front().second);
    named_later_.pop_front();
  }
}

void TargetSet::FlushIfDue(uint64_t now_ns) {
  if (batch_.empty()) {
    batch_began_ns_ = now_ns;
    for (auto& [key, target] : targets_) target->AddCounters(&batch_, now_ns, false);
    return;
  }
  bool due =
      now_ns - batch_began_ns_ >= kMaxBatchAgeNs || batch_.events() >= kMaxBatchEvents;
  for (auto& [key, target] : targets_) {
    due = due || target->Backlog() >= kMaxBacklog || target->IsShortOfRoom();
  }
  if (due) Flush(now_ns);
}

void TargetSet::Flush(uint64_t now_ns) {
  for (auto& [key, target] : targets_) target->AddCounters(&batch_, now_ns, false);
  batch_began_ns_ = now_ns;
  if (batch_.empty() && !sources_.HasRead()) return;
  sources_.AddTo(batch_.batch());
  absl::Status status = spool_.Append(batch_.batch());
  batch_.Reset();
  Settle(status.ok());
  if (status.ok()) return;
  LogDebug(status.ToString());
  SpoolCountersAlone(now_ns);
}

// The events are gone; that they are should be known, and the ends of processes.
void TargetSet::SpoolCountersAlone(uint64_t now_ns) {
  if (now_ns - counters_only_ns_ < kCountersOnlyPeriodNs) return;
  counters_only_ns_ = now_ns;
  for (auto& [key, target] : targets_) {
    target->AddIdentity(&batch_);
    if (target->ended()) {
      target->AddEnd(&batch_, now_ns);
    } else {
      target->AddCounters(&batch_, now_ns, true);
    }
  }
  absl::Status status =
      batch_.empty() ? absl::OkStatus() : spool_.Append(batch_.batch());
  batch_.Reset();
  Settle(status.ok());
}

void TargetSet::Settle(bool spooled) {
  if (spooled) {
    sources_.Commit();
  } else {
    sources_.Drop();
  }
  for (auto& [key, target] : targets_) {
    if (spooled) {
      target->Commit();
    } else {
      target->Drop();
    }
  }
}

void TargetSet::Arm(const GpuPlan& plan, uint64_t now_ns) {
  gpu_clock_->origin_ns = 0;
  for (auto& [key, target] : targets_) target->Arm(plan, now_ns);
}

void TargetSet::Disarm(uint64_t now_ns) {
  for (auto& [key, target] : targets_) target->Disarm(now_ns);
}

void TargetSet::RepeatCounters() {
  for (auto& [key, target] : targets_) target->RepeatCounters();
}

void TargetSet::ReadToTheEnd(uint64_t now_ns) {
  for (auto& [key, target] : targets_) {
    target->Disarm(now_ns);
    while (!target->Read(&batch_)) Flush(now_ns);
    target->AddCounters(&batch_, now_ns, /*final=*/true);
  }
  Flush(now_ns);
}

absl::Status TargetSet::Append(absl::FunctionRef<void(BatchBuilder&)> fill) {
  fill(batch_);
  absl::Status status = spool_.Append(batch_.batch());
  batch_.Reset();
  return status;
}

uint32_t TargetSet::recording() const {
  uint32_t count = 0;
  for (const auto& [key, target] : targets_) {
    // A DataLoader's worker records nothing.
    if (!target->ended() && !target->corrupt() && target->worker_of() == 0) ++count;
  }
  return count;
}

TargetSet::Totals TargetSet::totals() const {
  Totals totals = of_gone_;
  for (const auto& [key, target] : targets_) {
    totals.corrupt += target->corrupt() ? 1 : 0;
    totals.events_read += target->events_read();
    totals.events_lost += target->events_lost();
  }
  return totals;
}

}  // namespace lull::relay
