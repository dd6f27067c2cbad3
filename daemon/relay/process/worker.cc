#include "daemon/relay/process/worker.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/relay/deliver/hello.h"
#include "daemon/relay/read/process_facts.h"

namespace lull::relay {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
// A batch waits for company, so that a quiet job does not send one a millisecond;
// but never until a ring is near its end.
constexpr uint64_t kMaxBatchAgeNs = 200 * kMillisecond;
// A job that does nothing is still looked at, and nobody waits for that.
constexpr uint64_t kMaxObservedAgeNs = 500 * kMillisecond;
constexpr size_t kMaxBatchEvents = 16 * 1024;
constexpr uint64_t kMaxBacklog = 2048;  // twelve chunks, which stay in the cache
constexpr int kFastestPollMs = 1;
// In this time a thread that launches every microsecond fills a third of its ring.
constexpr int kSlowestPollMs = 50;
constexpr size_t kBusyEvents = 1024;  // in one pass: come back at once
constexpr uint64_t kReportPeriodNs = 200 * kMillisecond;
constexpr uint64_t kGovernPeriodNs = 100 * kMillisecond;
constexpr uint64_t kSymbolsPeriodNs = 300 * kMillisecond;
// DataLoader workers have no rings of their own that might get full.
constexpr uint64_t kLoadersPeriodNs = 200 * kMillisecond;
// While the job sleeps nobody is in a hurry, and it is still to be seen that it lives.
constexpr int kAsleepPollMs = 100;
constexpr uint64_t kCountersOnlyPeriodNs = 1000 * kMillisecond;
// Without a keeper: how long after the last target, and how long for delivery.
constexpr uint64_t kOrphanQuietNs = 1000 * kMillisecond;
constexpr uint64_t kOrphanDeliveryNs = 60'000 * kMillisecond;

bool IsReadable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

}  // namespace

Worker::Worker(RelayOptions options, UniqueFd channel, UniqueFd listener)
    : options_(std::move(options)),
      channel_(std::move(channel)),
      socket_(
          std::make_unique<TargetSocket>(options_.socket_path, std::move(listener))),
      arming_(options_.dormant, options_.job.start_ns(), options_.gpu) {}

Worker::~Worker() { upstream_.reset(); }

std::string Worker::SnapshotPath(uint64_t key) const {
  return absl::StrCat(options_.spool_directory, "/maps.", key);
}

absl::Status Worker::Start() {
  auto spool = Spool::Open(options_.spool_directory, options_.spool_limit_bytes);
  if (!spool.ok()) return spool.status();
  spool_ = *std::move(spool);
  if (spool_->state().stretch) arming_.Resume(*spool_->state().stretch);
  asleep_since_ns_ = MonotonicNs();
  if (!options_.job.settings().no_host_samples()) {
    sampler_ = std::make_unique<HostSampler>(std::random_device{}());
  }
  lull::v1::Hello hello = MakeHello(options_.job);
  absl::Status written = spool_->WriteHello(hello);
  if (!written.ok()) return written;
  upstream_ =
      std::make_unique<Upstream>(options_.collector, std::move(hello), spool_.get());
  TellArming();
  return absl::OkStatus();
}

int Worker::Run() {
  absl::Status started = Start();
  if (!started.ok()) {
    LogError(absl::StrCat("the relay cannot work: ", started.ToString()));
    WorkerStatus status;
    status.armed = arming_.armed();
    status.gpu = arming_.plan();
    status.upstream = started;
    status.refused = true;
    Tell({MessageKind::kStatus, 0, EncodeStatus(status), {}});
    return 1;
  }
  int interval_ms = kFastestPollMs;
  while (true) {
    HandleMessages();
    uint64_t now = MonotonicNs();
    bool busy = false;
    if (!spool_->state().job_ended) {  // nothing comes after the end of the job
      FollowArming(now);
      busy = ReadTargets(now);
      ControlTargets(now);
      EndTargets(now);
      FlushIfDue(now);
    }
    upstream_->Watch();
    if (abandoned_) {
      Flush(now);
      return 0;
    }
    if (!JobIsOver(now)) {
      over_since_ns_ = now;
    } else if (FinishJob(now) && Delivered()) {
      ReportStatus(now, /*now=*/true);
      Tell({MessageKind::kDelivered, 0, "", {}});
      if (!channel_) LeaveOrphaned();
      return 0;
    } else if (!channel_ && (now - over_since_ns_ > kOrphanDeliveryNs ||
                             access(options_.spool_directory.c_str(), F_OK) != 0)) {
      LeaveOrphaned();
      return 1;
    }
    ReportStatus(now, /*now=*/false);
    int slowest_ms = arming_.armed() ? kSlowestPollMs : kAsleepPollMs;
    interval_ms = busy ? kFastestPollMs : std::min(interval_ms + 1, slowest_ms);
    IsReadable(Wakes(), interval_ms);
  }
}

int Worker::Wakes() const {
  if (channel_) return channel_.get();
  return orphan_listener_ != nullptr ? orphan_listener_->fd() : -1;
}

void Worker::HandleMessages() {
  if (orphan_listener_ != nullptr) {
    return PollOrphanListener();
  }
  if (!channel_) return;  // an orphan of an attach
  Message message;
  while (true) {
    ChannelResult result = Receive(channel_.get(), &message);
    if (result == ChannelResult::kWouldBlock) return;
    if (result == ChannelResult::kClosed) return BecomeOrphan();
    Handle(std::move(message));
  }
}

void Worker::PollOrphanListener() {
  orphan_listener_->Poll([this](Newcomer n) { return AcceptOrphaned(std::move(n)); });
  if (socket_->Check(MonotonicNs())) {
    unrecorded_here_ += UnrecordedAsOrphan();  // with the listener they would be gone
    orphan_listener_ = std::make_unique<HandshakeListener>(socket_->fd());
  }
}

void Worker::Handle(Message message) {
  switch (message.kind) {
    case MessageKind::kSegment: {
      lull::v1::ProcessInfo info;
      if (!info.ParseFromString(message.body)) return;
      if (message.fds.empty()) {  // there was no descriptor left for it
        ++unrecorded_here_;
        return;
      }
      info.set_key(message.number);
      AddTarget(std::move(info), std::move(message.fds[0]),
                message.fds.size() > 1 ? std::move(message.fds[1]) : UniqueFd(),
                message.fds.size() > 2 ? std::move(message.fds[2]) : UniqueFd());
      return;
    }
    case MessageKind::kImageEnded: {
      auto target = targets_.find(message.number);
      if (target != targets_.end()) target->second->SetImageEnded();
      return;
    }
    case MessageKind::kJobStarted:
      if (!message.fds.empty()) job_pidfd_ = std::move(message.fds[0]);
      return;
    case MessageKind::kJobEnded:
      exit_status_ = static_cast<int>(static_cast<int64_t>(message.number));
      job_ended_ns_ = MonotonicNs();
      if (!absl::SimpleAtoi(message.body, &unreachable_ns_)) unreachable_ns_ = 0;
      return;
    case MessageKind::kListener:
      unreachable_ns_ = message.number;
      if (message.fds.empty()) return;
      socket_ = std::make_unique<TargetSocket>(options_.socket_path,
                                               std::move(message.fds[0]));
      return;
    case MessageKind::kWake:
      arming_.Wake(MonotonicNs());
      return;
    case MessageKind::kSleep:
      arming_.Sleep(MonotonicNs());
      return;
    case MessageKind::kUnrecorded:
      unrecorded_ = static_cast<uint32_t>(message.number);
      return;
    case MessageKind::kAbandon:
      abandoned_ = true;
      return;
    default:
      LogError("a message that the keeper does not send");
  }
}

void Worker::AddTarget(lull::v1::ProcessInfo info, UniqueFd memfd, UniqueFd pidfd,
                       UniqueFd memory) {
  uint64_t key = info.key();
  next_key_ = std::max(next_key_, key + 1);
  if (spool_->state().job_ended) return;
  if (spool_->state().ended.count(key) != 0) {
    Tell({MessageKind::kReleased, key, "", {}});
    return;
  }
  const bool loader = info.worker_of() != 0;
  if (loader) info.set_worker_of(WhoseWorker(info.parent_pid()));
  if (loader && info.worker_of() == 0) {
    Tell({MessageKind::kReleased, key, "", {}});
    return;
  }
  TargetOptions options{options_.job.settings(),
                        loader ? "" : SnapshotPath(key),
                        arming_.plan(),
                        gpu_clock_,
                        arming_.armed(),
                        sampler_.get(),
                        std::make_shared<const UniqueFd>(std::move(memory))};
  const int watched = pidfd.get();
  auto target = Target::Open(std::move(info), std::move(memfd), std::move(pidfd),
                             options, &modules_, &spool_->state());
  if (target.ok()) {
    ends_.Add(watched);
    targets_[key] = *std::move(target);
  } else {
    LogError(target.status().ToString());
    ++unrecorded_here_;
  }
}

// The key of the nearest target among the process and its ancestors: a worker may be
// the child of a fork server.
uint64_t Worker::WhoseWorker(uint32_t pid) const {
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

void Worker::BecomeOrphan() {
  LogWarning("the keeper is gone; going on without it");
  channel_.reset();
  spool_->LeaveRemoved();
  quiet_since_ns_ = over_since_ns_ = MonotonicNs();
  if (options_.attached) {
    // Nobody is left who would take the shim out again: it sleeps there.
    arming_.Sleep(MonotonicNs());
    exit_status_ = -1;
    job_ended_ns_ = MonotonicNs();
    return;
  }
  orphan_listener_ = std::make_unique<HandshakeListener>(socket_->fd());
}

void Worker::LeaveOrphaned() {
  socket_->Unlink();
  if (Delivered()) (void)spool_->Remove();
}

bool Worker::AcceptOrphaned(Newcomer newcomer) {
  if (spool_->state().job_ended) return false;
  for (auto& [key, target] : targets_) {
    if (target->pid() == newcomer.pid && newcomer.pid != 0) target->SetImageEnded();
  }
  newcomer.info.set_key(next_key_);
  if (newcomer.loader) newcomer.info.set_worker_of(kSomebodys);
  AddTarget(std::move(newcomer.info), std::move(newcomer.memfd),
            std::move(newcomer.pidfd), std::move(newcomer.memory));
  return true;
}

bool Worker::ReadTargets(uint64_t now_ns) {
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

void Worker::ControlTargets(uint64_t now_ns) {
  const bool govern = now_ns - governed_ns_ >= kGovernPeriodNs;
  const bool symbols = now_ns - symbols_ns_ >= kSymbolsPeriodNs;
  if (govern) governed_ns_ = now_ns;
  if (symbols) symbols_ns_ = now_ns;
  for (auto& [key, target] : targets_) {
    if (target->corrupt()) continue;
    // A worker is looked at as often as the process that it loads for.
    if (target->worker_of() != 0) {
      auto owner = targets_.find(target->worker_of());
      const Target& traced = owner == targets_.end() ? *target : *owner->second;
      target->FollowSamples(now_ns, traced.IsTracing());
      continue;
    }
    if (symbols) target->PrepareSymbols();
    if (govern) {
      target->Govern(now_ns);
      target->FreeRings();
    }
    target->GoOnIfUnread(now_ns);
    target->DriveGpu(now_ns);
    target->FollowSamples(now_ns, target->IsTracing());
    target->FollowRunDelay(&batch_, now_ns);
  }
}

void Worker::EndTargets(uint64_t now_ns) {
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
    corrupt_ += target.corrupt() ? 1 : 0;
    events_read_ += target.events_read();
    events_lost_ += target.events_lost();
    Tell({MessageKind::kReleased, key, "", {}});
    unlink(SnapshotPath(key).c_str());
    if (channel_) spool_->state().Forget(key);
    ends_.Remove(target.pidfd());
    targets_.erase(key);
  }
}

void Worker::FlushIfDue(uint64_t now_ns) {
  if (batch_.empty()) {
    batch_began_ns_ = now_ns;
    for (auto& [key, target] : targets_) target->AddCounters(&batch_, now_ns, false);
    return;
  }
  const uint64_t oldest = batch_.observed_alone() ? kMaxObservedAgeNs : kMaxBatchAgeNs;
  bool due = now_ns - batch_began_ns_ >= oldest || batch_.events() >= kMaxBatchEvents;
  for (auto& [key, target] : targets_) due = due || target->Backlog() >= kMaxBacklog;
  if (due) Flush(now_ns);
}

void Worker::Flush(uint64_t now_ns) {
  for (auto& [key, target] : targets_) target->AddCounters(&batch_, now_ns, false);
  batch_began_ns_ = now_ns;
  if (batch_.empty()) return;
  absl::Status status = spool_->Append(batch_.batch());
  batch_.Reset();
  if (status.ok()) {
    for (auto& [key, target] : targets_) target->Commit();
    return;
  }
  LogDebug(status.ToString());
  for (auto& [key, target] : targets_) target->Drop();
  // The events are gone; that they are should be known, and the ends of processes.
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
  status = batch_.empty() ? absl::OkStatus() : spool_->Append(batch_.batch());
  batch_.Reset();
  for (auto& [key, target] : targets_) {
    if (status.ok()) {
      target->Commit();
    } else {
      target->Drop();
    }
  }
}

bool Worker::JobIsOver(uint64_t now_ns) {
  if (spool_->state().job_ended) return true;
  if (exit_status_) {
    return targets_.empty() ||
           now_ns - job_ended_ns_ >
               static_cast<uint64_t>(absl::ToInt64Nanoseconds(options_.grace));
  }
  if (channel_) return false;
  if (!targets_.empty() || (job_pidfd_ && !IsReadable(job_pidfd_.get(), 0))) {
    quiet_since_ns_ = now_ns;
    return false;
  }
  return now_ns - quiet_since_ns_ > kOrphanQuietNs;
}

bool Worker::FinishJob(uint64_t now_ns) {
  if (spool_->state().job_ended) return true;
  // Targets that outlived the grace time: what they have done so far is reported.
  for (auto& [key, target] : targets_) {
    target->Disarm(now_ns);
    while (!target->Read(&batch_)) Flush(now_ns);
    target->AddCounters(&batch_, now_ns, /*final=*/true);
  }
  Flush(now_ns);
  lull::v1::JobEnd end;
  end.set_end_ns(exit_status_ ? job_ended_ns_ : now_ns);
  end.set_known(exit_status_ && *exit_status_ >= 0);
  end.set_exit_status(exit_status_.value_or(-1));
  end.set_relay_cpu_ns(ProcessCpuNs() + modules_.CpuNs());
  end.set_unrecorded_processes(unrecorded_ + unrecorded_here_ + UnrecordedAsOrphan());
  if (orphan_listener_ != nullptr) socket_->LookAtEnd(now_ns);
  end.set_unreachable_ns(unreachable_ns_ + socket_->unreachable_ns(now_ns));
  batch_.SetJobEnd(end);
  absl::Status status = spool_->Append(batch_.batch());
  batch_.Reset();
  return status.ok();
}

uint32_t Worker::UnrecordedAsOrphan() const {
  if (orphan_listener_ == nullptr) return 0;
  return orphan_listener_->refused() + orphan_listener_->unrecorded();
}

bool Worker::Delivered() const {
  return spool_->acknowledged() >= spool_->last_sequence();
}

void Worker::ReportStatus(uint64_t now_ns, bool now) {
  if (!channel_ || (!now && now_ns - reported_ns_ < kReportPeriodNs)) return;
  reported_ns_ = now_ns;
  UpstreamStatus upstream = upstream_->status();
  WorkerStatus status;
  status.corrupt_segments = corrupt_;
  status.events_read = events_read_;
  status.events_lost = events_lost_;
  for (auto& [key, target] : targets_) {
    status.corrupt_segments += target->corrupt() ? 1 : 0;
    status.events_read += target->events_read();
    status.events_lost += target->events_lost();
  }
  status.armed = arming_.armed();
  status.gpu = arming_.plan();
  status.batches_spooled = spool_->last_sequence();
  status.batches_acknowledged = spool_->acknowledged();
  status.events_lost += upstream.events_rejected;
  status.connected = upstream.connected;
  status.refused = upstream.refused;
  status.upstream = upstream.last_error;
  if (status == reported_) return;
  if (Send(channel_.get(), {MessageKind::kStatus, 0, EncodeStatus(status), {}}) ==
      ChannelResult::kDone) {
    reported_ = std::move(status);
  }
}

// For messages that must arrive; the keeper reads fast, so waiting is short.
void Worker::Tell(Message message) {
  while (channel_ && Send(channel_.get(), message) == ChannelResult::kWouldBlock) {
    pollfd entry{channel_.get(), POLLOUT, 0};
    if (poll(&entry, 1, 1000) < 0) return;
  }
}

}  // namespace lull::relay
