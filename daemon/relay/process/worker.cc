#include "daemon/relay/process/worker.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"
#include "daemon/relay/deliver/hello.h"
#include "daemon/relay/read/segment_reader.h"

namespace lull::relay {
namespace {

constexpr int kFastestPollMs = 1;
// In this time a thread that launches every microsecond fills a third of its ring.
constexpr int kSlowestPollMs = 50;
// At the end of a window CUPTI delivers in a moment what a device did in seconds, and
// waits for room 50 ms at most (preload/cupti/delivery.h).
constexpr int kTracedPollMs = 16;
constexpr uint64_t kDeliversForNs = 1'000'000'000;
// While the job sleeps nobody is in a hurry, and it is still to be seen that it lives.
constexpr int kAsleepPollMs = 100;
// Without a keeper: how long for delivery.
constexpr uint64_t kOrphanDeliveryNs = 60'000'000'000;
// The lines of source of the last stacks are worth that much at the end of a job. Its
// names are waited for by who sends them; here, so that the end knows what that took.
constexpr uint64_t kSourcesNs = 300'000'000;
constexpr uint64_t kNamesNs = 1'000'000'000;

UniqueFd TakeFd(Message* message, size_t index) {
  return message->fds.size() > index ? std::move(message->fds[index]) : UniqueFd();
}

}  // namespace

Worker::Worker(RelayOptions options, UniqueFd channel, UniqueFd listener)
    : options_(std::move(options)),
      keeper_(std::move(channel)),
      socket_(
          std::make_unique<TargetSocket>(options_.socket_path, std::move(listener))),
      arming_(options_.dormant, options_.job.start_ns(), options_.gpu),
      life_(options_.grace) {}

Worker::~Worker() { upstream_.reset(); }

absl::Status Worker::Start() {
  LULL_ASSIGN_OR_RETURN(
      spool_, Spool::Open(options_.spool_directory, options_.spool_limit_bytes));
  if (spool_->state().stretch) arming_.Resume(*spool_->state().stretch);
  asleep_since_ns_ = MonotonicNs();
  targets_ = std::make_unique<TargetSet>(options_, *spool_);
  v1::Hello hello = MakeHello(options_.job);
  LULL_RETURN_IF_ERROR(spool_->WriteHello(hello));
  upstream_ = std::make_unique<Upstream>(options_.collector, std::move(hello),
                                         spool_.get(), &targets_->symbols());
  TellArming();
  return absl::OkStatus();
}

int Worker::SayThatItCannotWork(const absl::Status& why) {
  LogError(absl::StrCat("the relay cannot work: ", why.ToString()));
  WorkerStatus status;
  status.armed = arming_.armed();
  status.gpu = arming_.plan();
  status.upstream = why;
  status.refused = true;
  keeper_.Tell({MessageKind::kStatus, 0, EncodeStatus(status), {}});
  return 1;
}

int Worker::Run() {
  if (absl::Status started = Start(); !started.ok()) {
    return SayThatItCannotWork(started);
  }
  int interval_ms = kFastestPollMs;
  while (true) {
    const bool news = HandleMessages();
    bool busy = false;
    if (auto exit_status = Pass(MonotonicNs(), &busy)) return *exit_status;
    if (targets_->IsTracing()) traced_ns_ = MonotonicNs();
    const bool delivers = MonotonicNs() - traced_ns_ < kDeliversForNs;
    const int slowest_ms = delivers          ? kTracedPollMs
                           : arming_.armed() ? kSlowestPollMs
                                             : kAsleepPollMs;
    interval_ms = news   ? kFastestPollMs
                  : busy ? std::max(interval_ms / 2, kFastestPollMs)
                         : std::min(interval_ms * 2, slowest_ms);
    // At the end somebody waits for the last acknowledgement; before, none is urgent.
    const bool ended = spool_->state().job_ended;
    pollfd wakes[] = {{Wakes(), POLLIN, 0},
                      {ended ? spool_->all_acknowledged_fd() : -1, POLLIN, 0}};
    poll(wakes, std::size(wakes), interval_ms);
  }
}

std::optional<int> Worker::Pass(uint64_t now_ns, bool* busy) {
  if (!spool_->state().job_ended) {  // nothing comes after the end of the job
    WakeOnceReadable(now_ns);
    FollowArming(now_ns);
    *busy = targets_->ReadAll(now_ns) || *busy;
    targets_->Control(now_ns);
    targets_->ReleaseEnded(now_ns, [this](uint64_t key) { Released(key); });
    targets_->FlushIfDue(now_ns);
  }
  upstream_->Watch();
  if (abandoned_) {
    targets_->Flush(now_ns);
    return 0;
  }
  if (JobIsOver(now_ns)) {
    const bool known = spool_->state().job_ended;
    const bool finished = FinishJob(now_ns);
    *busy = *busy || finished != known;  // somebody waits for its delivery
    if (finished && Delivered()) {
      ReportStatus(now_ns);
      keeper_.Tell({MessageKind::kDelivered, 0, "", {}});
      // The keeper waits for that, and whoever typed `lull run` with it. gRPC's threads
      // alone would take 4 of 14 ms to end in order, on two processors.
      if (keeper_.open()) {
        targets_->symbols().End();  // no process of ours outlives us
        _exit(0);
      }
      LeaveOrphaned();
      return 0;
    }
    if (!keeper_.open() && life_.OverFor(now_ns) > kOrphanDeliveryNs) {
      LeaveOrphaned();
      return 1;
    }
  }
  // Whoever removes the spool of an orphan wants nothing to be left, and what targets
  // still have could be written nowhere.
  if (!keeper_.open() && access(options_.spool_directory.c_str(), F_OK) != 0 &&
      errno == ENOENT) {
    LeaveOrphaned();
    return 1;
  }
  if (keeper_.StatusIsDue(now_ns)) ReportStatus(now_ns);
  return std::nullopt;
}

int Worker::Wakes() const {
  if (keeper_.open()) return keeper_.fd();
  return orphan_listener_ != nullptr ? orphan_listener_->fd() : -1;
}

bool Worker::HandleMessages() {
  if (orphan_listener_ != nullptr) PollOrphanListener();
  bool news = false;
  Message message;
  while (keeper_.open()) {  // it is not in an orphan
    ChannelResult result = keeper_.Take(&message);
    if (result == ChannelResult::kWouldBlock) return news;
    news = true;
    if (result == ChannelResult::kClosed) {
      BecomeOrphan();
    } else {
      Handle(std::move(message));
    }
  }
  return news;
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
    case MessageKind::kSegment:
      return HandleSegment(std::move(message));
    case MessageKind::kImageEnded: {
      uint64_t by_ns = 0;
      if (!absl::SimpleAtoi(message.body, &by_ns)) by_ns = UINT64_MAX;
      return targets_->EndImage(message.number, by_ns);
    }
    case MessageKind::kJobStarted:
      if (!message.fds.empty()) life_.Started(TakeFd(&message, 0));
      return;
    case MessageKind::kJobEnded:
      life_.Ended(static_cast<int>(static_cast<int64_t>(message.number)),
                  MonotonicNs());
      upstream_->Hurry();
      if (!absl::SimpleAtoi(message.body, &unreachable_ns_)) unreachable_ns_ = 0;
      return;
    case MessageKind::kListener:
      unreachable_ns_ = message.number;
      if (message.fds.empty()) return;
      socket_ =
          std::make_unique<TargetSocket>(options_.socket_path, TakeFd(&message, 0));
      return;
    case MessageKind::kWake:
      wake_asked_ns_ = MonotonicNs();
      return;
    case MessageKind::kSleep:
      wake_asked_ns_ = 0;
      return arming_.Sleep(MonotonicNs());
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

void Worker::HandleSegment(Message message) {
  v1::ProcessInfo info;
  if (!info.ParseFromString(message.body)) return;
  if (message.fds.empty()) {  // there was no descriptor left for it
    ++unrecorded_here_;
    return;
  }
  info.set_key(message.number);
  AddTarget(std::move(info), TakeFd(&message, 0), TakeFd(&message, 1),
            TakeFd(&message, 2));
}

void Worker::AddTarget(v1::ProcessInfo info, UniqueFd memfd, UniqueFd pidfd,
                       UniqueFd memory) {
  const uint64_t key = info.key();
  next_key_ = std::max(next_key_, key + 1);
  if (spool_->state().job_ended) return;
  using Added = TargetSet::Added;
  const Added added =
      spool_->state().ended.count(key) != 0
          ? Added::kNotWanted
          : targets_->Add(std::move(info), std::move(memfd), std::move(pidfd),
                          std::move(memory), arming_.armed(), arming_.plan());
  if (added == Added::kNotWanted) {
    keeper_.Tell({MessageKind::kReleased, key, "", {}});
  } else if (added == Added::kFailed) {
    ++unrecorded_here_;
  }
}

void Worker::Released(uint64_t key) {
  keeper_.Tell({MessageKind::kReleased, key, "", {}});
  if (keeper_.open()) spool_->state().Forget(key);
}

void Worker::BecomeOrphan() {
  LogWarning("the keeper is gone; going on without it");
  keeper_.Close();
  spool_->LeaveRemoved();
  life_.LoseKeeper(MonotonicNs());
  if (options_.attached) {
    // Nobody is left who would take the shim out again: it sleeps there.
    wake_asked_ns_ = 0;
    arming_.Sleep(MonotonicNs());
    life_.Ended(-1, MonotonicNs());
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
  targets_->EndImagesOf(newcomer.pid, CreatedNs(newcomer.memfd.get()));
  newcomer.info.set_key(next_key_);
  if (newcomer.loader) newcomer.info.set_worker_of(kSomebodys);
  AddTarget(std::move(newcomer.info), std::move(newcomer.memfd),
            std::move(newcomer.pidfd), std::move(newcomer.memory));
  return true;
}

bool Worker::JobIsOver(uint64_t now_ns) {
  return spool_->state().job_ended || life_.IsOver(now_ns, !targets_->empty());
}

bool Worker::FinishJob(uint64_t now_ns) {
  if (spool_->state().job_ended) return true;
  // Targets that outlived the grace time: what they have done so far is reported.
  targets_->ReadToTheEnd(now_ns);
  const uint64_t over_ns = life_.OverFor(now_ns);
  if (targets_->IsReadingSources() && over_ns < kSourcesNs) return false;
  if (targets_->symbols().IsNaming() && over_ns < kNamesNs) return false;
  v1::JobEnd end;
  life_.Fill(now_ns, &end);
  end.set_relay_cpu_ns(ProcessCpuNs() + targets_->ReadersCpuNs());
  end.set_unrecorded_processes(unrecorded_ + unrecorded_here_ + UnrecordedAsOrphan());
  if (orphan_listener_ != nullptr) socket_->LookAtEnd(now_ns);
  end.set_unreachable_ns(unreachable_ns_ + socket_->unreachable_ns(now_ns));
  return targets_->Append([&end](BatchBuilder& batch) { batch.SetJobEnd(end); }).ok();
}

uint32_t Worker::UnrecordedAsOrphan() const {
  if (orphan_listener_ == nullptr) return 0;
  return orphan_listener_->refused() + orphan_listener_->unrecorded();
}

bool Worker::Delivered() const {
  return spool_->acknowledged() >= spool_->last_sequence();
}

void Worker::ReportStatus(uint64_t now_ns) {
  if (!keeper_.open()) return;
  const UpstreamStatus upstream = upstream_->status();
  const TargetSet::Totals totals = targets_->totals();
  WorkerStatus status;
  status.corrupt_segments = totals.corrupt;
  status.events_read = totals.events_read;
  status.events_lost = totals.events_lost + upstream.events_rejected;
  status.armed = arming_.armed();
  status.gpu = arming_.plan();
  status.batches_spooled = spool_->last_sequence();
  status.batches_acknowledged = spool_->acknowledged();
  status.connected = upstream.connected;
  status.refused = upstream.refused;
  status.upstream = upstream.last_error;
  status.naming = targets_->symbols().IsNaming();
  keeper_.Report(std::move(status), now_ns);
}

}  // namespace lull::relay
