#include "daemon/relay/process/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/clock.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "daemon/relay/deliver/deliver.h"
#include "daemon/relay/deliver/spool.h"
#include "daemon/relay/patience.h"
#include "daemon/relay/process/channel.h"
#include "daemon/relay/process/handshake.h"
#include "daemon/relay/process/worker_process.h"

namespace lull::relay {
namespace {

// A worker that dies at once is not started again at once.
constexpr uint64_t kFirstRestartDelayNs = 10'000'000;
constexpr uint64_t kLongestRestartDelayNs = 2'000'000'000;
constexpr uint64_t kStableNs = 5'000'000'000;
constexpr int kAbandonPatienceMs = 2000;
constexpr uint64_t kWorkNs = 100'000'000;  // of CPU: more than looking around takes

bool IsReadable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

absl::Status Check(const RelayOptions& options) {
  if (options.spool_directory.empty() || options.spool_directory[0] != '/') {
    return absl::InvalidArgumentError("the spool directory must be an absolute path");
  }
  if (options.spool_limit_bytes < kMinSpoolBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the spool needs at least ", kMinSpoolBytes, " bytes"));
  }
  if (options.collector.target.empty()) {
    return absl::InvalidArgumentError("no collector's address");
  }
  if (options.job.id().empty()) return absl::InvalidArgumentError("the job has no id");
  return absl::OkStatus();
}

}  // namespace

class Keeper::Impl {
 public:
  Impl(RelayOptions options, UniqueFd listener, UniqueFd spool)
      : options_(std::move(options)),
        spool_(std::move(spool)),
        socket_(
            std::make_unique<TargetSocket>(options_.socket_path, std::move(listener))),
        handshakes_(
            std::make_unique<HandshakeListener>(socket_->fd(), options_.target_user)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        pulse_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    options_.job.set_dormant(options_.dormant);
    options_.job.set_attached(options_.attached);
    worker_status_.armed = !options_.dormant;
    worker_status_.gpu = options_.gpu;
    options_.job.set_gpu_mode(options_.gpu.mode);
    options_.job.set_gpu_schedule(ScheduleText(options_.gpu));
    Watch(handshakes_->fd(), EPOLLIN);
    Watch(timer_.get(), EPOLLIN);
    Watch(pulse_.get(), EPOLLIN);
    itimerspec every_second{};
    every_second.it_value.tv_sec = every_second.it_interval.tv_sec = 1;
    timerfd_settime(pulse_.get(), 0, &every_second, nullptr);
  }

  ~Impl() { Abandon(); }

  absl::Status StartWorker() {
    LULL_ASSIGN_OR_RETURN(worker_, StartWorkerProcess(socket_->fd()));
    started_ns_ = MonotonicNs();
    outgoing_.clear();
    Watch(worker_.channel.get(), EPOLLIN);
    Queue({MessageKind::kOptions, 0, EncodeOptions(options_), {}});
    if (job_pidfd_) Queue(JobStartedMessage());
    for (const auto& [key, segment] : segments_) QueueSegment(key, segment);
    told_unrecorded_ = 0;
    TellUnrecorded();
    if (job_ended_) Queue(JobEndedMessage());
    FlushOutgoing();
    return absl::OkStatus();
  }

  int fd() const { return epoll_.get(); }

  void Poll() {
    if (socket_ == nullptr) return;  // closed
    handshakes_->Poll([this](Newcomer n) { return Accept(std::move(n)); });
    TellUnrecorded();
    for (const UniqueFd* timer : {&timer_, &pulse_}) {
      uint64_t expirations;
      while (read(timer->get(), &expirations, sizeof(expirations)) > 0) {
      }
    }
    CheckSocket();
    if (worker_.pid > 0) ReceiveAll();
    if (worker_.pid > 0) FlushOutgoing();
    if (worker_.pid <= 0 && !finished() && MonotonicNs() >= restart_at_ns_) Restart();
  }

  void JobStarted(pid_t pid) {
    job_pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (job_pidfd_) Queue(JobStartedMessage());
    Poll();
  }

  void Wake() {
    Queue({MessageKind::kWake, 0, "", {}});
    Poll();
  }

  void Sleep() {
    Queue({MessageKind::kSleep, 0, "", {}});
    Poll();
  }

  void Detached(pid_t pid) {
    EndImages(pid);
    Poll();
  }

  void JobEnded(int exit_status) {
    Poll();  // targets that said hello before the end are in time
    job_ended_ = true;
    exit_status_ = exit_status;
    if (socket_ != nullptr && !options_.attached) {
      const uint64_t now_ns = MonotonicNs();
      socket_->LookAtEnd(now_ns);
      unreachable_ns_ = socket_->unreachable_ns(now_ns);
    }
    Queue(JobEndedMessage());
    Poll();
  }

  absl::Status WaitUntilDelivered(absl::Duration timeout, absl::Duration patience) {
    Patience waiting(timeout, patience);
    while (!delivered_) {
      Poll();
      if (delivered_) break;
      absl::Duration left = waiting.Left(Progress());
      if (job_ended_ && worker_status_.refused) {
        return Undelivered(worker_status_.upstream);
      }
      if (abandoned_ || left <= absl::ZeroDuration()) {
        return Undelivered(absl::DeadlineExceededError(
            worker_status_.upstream.ok()
                ? "the collector has not acknowledged everything in time"
                : std::string(worker_status_.upstream.message())));
      }
      pollfd entry{epoll_.get(), POLLIN, 0};
      poll(&entry, 1,
           static_cast<int>(absl::ToInt64Milliseconds(
               std::clamp(left, absl::Milliseconds(1), absl::Milliseconds(200)))));
    }
    Close();
    return RemoveTree(options_.spool_directory);
  }

  void Leave() {
    if (abandoned_ || delivered_) return Close();
    abandoned_ = true;
    if (worker_.pid > 0) FlushOutgoing();
    worker_ = WorkerProcess();  // its end of the channel tells it
    Close(/*left=*/true);
  }

  void Abandon() {
    if (abandoned_ || delivered_) return Close();
    abandoned_ = true;
    socket_->Unlink();
    if (worker_.pid > 0) {
      outgoing_.push_back({MessageKind::kAbandon, 0, "", {}});
      uint64_t until = MonotonicNs() + kAbandonPatienceMs * 1'000'000ull;
      while (!FlushOutgoing() && MonotonicNs() < until) {
        pollfd entry{worker_.channel.get(), POLLOUT, 0};
        poll(&entry, 1, 10);
      }
      ReapWorkerProcess(worker_.pid, kAbandonPatienceMs);
      worker_.pid = -1;
    }
    Close();
  }

  RelayStatus status() const {
    RelayStatus status;
    status.targets = targets_;
    for (const auto& [key, segment] : segments_) {
      if (!segment.image_ended && segment.pidfd && !IsReadable(segment.pidfd.get())) {
        ++status.live_targets;
      }
    }
    status.refused = refused_ + (handshakes_ != nullptr ? handshakes_->refused() : 0);
    status.worker_restarts = restarts_;
    status.corrupt_segments = worker_status_.corrupt_segments;
    status.events_read = worker_status_.events_read;
    status.events_lost = worker_status_.events_lost;
    status.batches_spooled = worker_status_.batches_spooled;
    status.batches_acknowledged = worker_status_.batches_acknowledged;
    status.armed = worker_status_.armed;
    status.connected = worker_status_.connected;
    status.upstream = worker_status_.upstream;
    return status;
  }

  pid_t worker_pid() const { return worker_.pid; }

 private:
  struct Segment {
    pid_t pid = 0;
    UniqueFd memfd;
    UniqueFd pidfd;
    UniqueFd memory;
    std::string info;  // serialised ProcessInfo
    bool image_ended = false;
  };

  bool finished() const { return delivered_ || abandoned_; }

  void Watch(int fd, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
    }
  }

  bool Accept(Newcomer newcomer) {
    if (options_.job.settings().no_host_samples()) {  // of a lull around ours, or within
      if (newcomer.loader) return false;
      newcomer.memory.reset();
    }
    // Before the Welcome: a process that is to sleep records nothing, not once.
    if (finished() || !PrepareControl(worker_status_.gpu, worker_status_.armed,
                                      MonotonicNs(), newcomer.memfd.get())) {
      return false;
    }
    // The same pid again: it has called exec, the old image writes no more.
    if (newcomer.pid > 0) EndImages(newcomer.pid);
    uint64_t key = next_key_++;
    Segment& segment = segments_[key];
    segment.pid = newcomer.pid;
    segment.memfd = std::move(newcomer.memfd);
    segment.pidfd = std::move(newcomer.pidfd);
    segment.memory = std::move(newcomer.memory);
    if (newcomer.loader) newcomer.info.set_worker_of(kSomebodys);
    segment.info = newcomer.info.SerializeAsString();
    ++targets_;
    QueueSegment(key, segment);
    return true;
  }

  void TellUnrecorded() {
    uint32_t unrecorded =
        refused_ + handshakes_->refused() + unrecorded_ + handshakes_->unrecorded();
    if (unrecorded == told_unrecorded_) return;
    told_unrecorded_ = unrecorded;
    Queue({MessageKind::kUnrecorded, unrecorded, "", {}});
  }

  // Targets of an attach have all come when it begins, on a socket that may lie in
  // their own folders.
  void CheckSocket() {
    if (options_.attached || finished() || !socket_->Check(MonotonicNs())) return;
    refused_ += handshakes_->refused();
    unrecorded_ += handshakes_->unrecorded();
    handshakes_ =
        std::make_unique<HandshakeListener>(socket_->fd(), options_.target_user);
    Watch(handshakes_->fd(), EPOLLIN);
    // A copy: the next socket may come before this one is sent. Without a descriptor
    // for it the worker makes one of its own, should it be left alone.
    Message message{MessageKind::kListener, socket_->unreachable_ns(MonotonicNs()), ""};
    message.fds.emplace_back(fcntl(socket_->fd(), F_DUPFD_CLOEXEC, 0));
    if (message.fds[0]) Queue(std::move(message));
  }

  void EndImages(pid_t pid) {
    for (auto& [key, segment] : segments_) {
      if (segment.pid != pid || segment.image_ended) continue;
      segment.image_ended = true;
      Queue({MessageKind::kImageEnded, key, "", {}});
    }
  }

  void QueueSegment(uint64_t key, const Segment& segment) {
    Message message{MessageKind::kSegment, key, segment.info};
    message.lent.push_back(segment.memfd.get());  // until the worker releases it
    if (segment.pidfd) message.lent.push_back(segment.pidfd.get());
    if (segment.pidfd && segment.memory) message.lent.push_back(segment.memory.get());
    Queue(std::move(message));
    if (segment.image_ended) Queue({MessageKind::kImageEnded, key, "", {}});
  }

  Message JobStartedMessage() const {
    Message message{MessageKind::kJobStarted, 0, "", {}};
    message.lent.push_back(job_pidfd_.get());
    return message;
  }

  Message JobEndedMessage() const {
    return {MessageKind::kJobEnded,
            static_cast<uint64_t>(static_cast<int64_t>(exit_status_)),
            absl::StrCat(unreachable_ns_),
            {}};
  }

  // While there is no worker, nothing is queued: its successor is told everything.
  void Queue(Message message) {
    if (worker_.pid > 0) outgoing_.push_back(std::move(message));
  }

  // True when nothing is left to send.
  bool FlushOutgoing() {
    while (!outgoing_.empty()) {
      ChannelResult result = Send(worker_.channel.get(), outgoing_.front());
      if (result == ChannelResult::kClosed) break;  // ReceiveAll() sees to it
      if (result == ChannelResult::kWouldBlock) {
        SetTimer(MonotonicNs() + 1'000'000);
        return false;
      }
      outgoing_.pop_front();
    }
    return outgoing_.empty();
  }

  void ReceiveAll() {
    Message message;
    while (true) {
      ChannelResult result = Receive(worker_.channel.get(), &message);
      if (result == ChannelResult::kWouldBlock) return;
      if (result == ChannelResult::kClosed) return WorkerEnded();
      switch (message.kind) {
        case MessageKind::kReleased:
          segments_.erase(message.number);
          break;
        case MessageKind::kStatus:
          DecodeStatus(message.body, &worker_status_);
          break;
        case MessageKind::kDelivered:
          delivered_ = true;
          break;
        default:
          break;
      }
    }
  }

  void WorkerEnded() {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, worker_.channel.get(), nullptr);
    // Its channel is closed, so it is ending; it has no other way to go on.
    ReapWorkerProcess(worker_.pid, delivered_ ? kAbandonPatienceMs : 100);
    worker_ = WorkerProcess();
    outgoing_.clear();
    if (finished()) return;
    uint64_t now = MonotonicNs();
    restart_delay_ns_ = now - started_ns_ > kStableNs
                            ? kFirstRestartDelayNs
                            : std::min(restart_delay_ns_ * 2, kLongestRestartDelayNs);
    restart_at_ns_ = now + restart_delay_ns_;
    SetTimer(restart_at_ns_);
  }

  void Restart() {
    ++restarts_;
    if (!StartWorker().ok()) {
      restart_at_ns_ = MonotonicNs() + kLongestRestartDelayNs;
      SetTimer(restart_at_ns_);
    }
  }

  void SetTimer(uint64_t at_ns) {
    itimerspec when{};
    when.it_value.tv_sec = static_cast<time_t>(at_ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(at_ns % 1'000'000'000);
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
  }

  // Grows as long as anything goes on.
  uint64_t Progress() const {
    return worker_status_.events_read + worker_status_.batches_spooled +
           worker_status_.batches_acknowledged + WorkerCpuNs(worker_.pid) / kWorkNs;
  }

  absl::Status Undelivered(const absl::Status& why) const {
    uint64_t left =
        worker_status_.batches_spooled - worker_status_.batches_acknowledged;
    return absl::Status(
        why.code(),
        absl::StrCat(why.message(), "; ", left,
                     left == 1 ? " batch is" : " batches are",
                     " not delivered and stay in ", options_.spool_directory));
  }

  void Close(bool left = false) {
    if (socket_ == nullptr) return;
    if (worker_.pid > 0) {
      ReapWorkerProcess(worker_.pid, kAbandonPatienceMs);
      worker_ = WorkerProcess();
    }
    refused_ += handshakes_->refused();
    unrecorded_ += handshakes_->unrecorded();
    handshakes_.reset();
    // A worker that was left behind answers there.
    if (!left) socket_->Unlink();
    socket_.reset();
    spool_.reset();
    segments_.clear();
  }

  RelayOptions options_;
  UniqueFd spool_;                        // KeepSpool()
  std::unique_ptr<TargetSocket> socket_;  // null: closed
  std::unique_ptr<HandshakeListener> handshakes_;
  uint32_t refused_ = 0;     // by earlier ones
  uint32_t unrecorded_ = 0;  // by earlier ones
  UniqueFd epoll_;
  UniqueFd timer_;
  UniqueFd pulse_;  // once a second, so that Poll() is called
  WorkerProcess worker_;
  std::deque<Message> outgoing_;
  std::map<uint64_t, Segment> segments_;
  uint64_t next_key_ = 1;
  UniqueFd job_pidfd_;
  bool job_ended_ = false;
  int exit_status_ = -1;
  uint64_t unreachable_ns_ = 0;  // as of the end of the job
  bool delivered_ = false;
  bool abandoned_ = false;
  WorkerStatus worker_status_;
  uint32_t targets_ = 0;
  uint32_t told_unrecorded_ = 0;  // to the present worker
  uint32_t restarts_ = 0;
  uint64_t started_ns_ = 0;
  uint64_t restart_at_ns_ = 0;
  uint64_t restart_delay_ns_ = kFirstRestartDelayNs;
};

absl::StatusOr<std::unique_ptr<Keeper>> Keeper::Start(RelayOptions options,
                                                      UniqueFd listener) {
  LULL_RETURN_IF_ERROR(Check(options));
  options.job.set_command(CleanText(options.job.command()));
  LULL_RETURN_IF_ERROR(MakePrivateDirectory(options.spool_directory));
  TidySpools(std::filesystem::path(options.spool_directory).parent_path().string());
  if (!listener) {
    LULL_ASSIGN_OR_RETURN(listener, ListenForTargets(options.socket_path));
  }
  LULL_ASSIGN_OR_RETURN(UniqueFd spool, KeepSpool(options.spool_directory));
  auto impl =
      std::make_unique<Impl>(std::move(options), std::move(listener), std::move(spool));
  LULL_RETURN_IF_ERROR(impl->StartWorker());
  return std::unique_ptr<Keeper>(new Keeper(std::move(impl)));
}

Keeper::Keeper(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Keeper::~Keeper() = default;

int Keeper::fd() const { return impl_->fd(); }
void Keeper::Poll() { impl_->Poll(); }
void Keeper::JobStarted(pid_t pid) { impl_->JobStarted(pid); }
void Keeper::Wake() { impl_->Wake(); }
void Keeper::Sleep() { impl_->Sleep(); }
void Keeper::Detached(pid_t pid) { impl_->Detached(pid); }
void Keeper::JobEnded(int exit_status) { impl_->JobEnded(exit_status); }
absl::Status Keeper::WaitUntilDelivered(absl::Duration timeout,
                                        absl::Duration patience) {
  return impl_->WaitUntilDelivered(timeout, patience);
}
void Keeper::Leave() { impl_->Leave(); }
void Keeper::Abandon() { impl_->Abandon(); }
RelayStatus Keeper::status() const { return impl_->status(); }
pid_t Keeper::worker_pid() const { return impl_->worker_pid(); }

}  // namespace lull::relay
