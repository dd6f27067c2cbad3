#include "daemon/relay/process/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

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
#include "daemon/relay/process/worker_link.h"
#include "daemon/relay/process/worker_process.h"
#include "daemon/relay/read/segment_reader.h"

namespace lull::relay {
namespace {

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
        pulse_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        worker_(epoll_.get(), [this] { return StartWorkerProcess(socket_->fd()); }) {
    options_.job.set_dormant(options_.dormant);
    options_.job.set_attached(options_.attached);
    WorkerStatus at_first;
    at_first.armed = !options_.dormant;
    at_first.gpu = options_.gpu;
    worker_.set_status(std::move(at_first));
    options_.job.set_gpu_mode(options_.gpu.mode);
    options_.job.set_gpu_schedule(ScheduleText(options_.gpu));
    Watch(handshakes_->fd());
    Watch(pulse_.get());
    itimerspec every_second{};
    every_second.it_value.tv_sec = every_second.it_interval.tv_sec = 1;
    timerfd_settime(pulse_.get(), 0, &every_second, nullptr);
  }

  ~Impl() { Abandon(); }

  absl::Status StartWorker() {
    LULL_RETURN_IF_ERROR(worker_.Start());
    worker_.Queue({MessageKind::kOptions, 0, EncodeOptions(options_), {}});
    if (job_pidfd_) worker_.Queue(JobStartedMessage());
    for (const auto& [key, segment] : segments_) QueueSegment(key, segment);
    told_unrecorded_ = 0;
    TellUnrecorded();
    if (wake_owed_) worker_.Queue({MessageKind::kWake, 0, "", {}});
    if (job_ended_) worker_.Queue(JobEndedMessage());
    worker_.Flush();
    return absl::OkStatus();
  }

  int fd() const { return epoll_.get(); }

  void Poll() {
    if (socket_ == nullptr) return;  // closed
    handshakes_->Poll([this](Newcomer n) { return Accept(std::move(n)); });
    TellUnrecorded();
    uint64_t expirations;
    while (read(pulse_.get(), &expirations, sizeof(expirations)) > 0) {
    }
    CheckSocket();
    worker_.Receive([this](const Message& message) {
      if (message.kind == MessageKind::kReleased) segments_.erase(message.number);
    });
    wake_owed_ = wake_owed_ && !worker_.status().armed;
    worker_.Flush();
    if (worker_.RestartIsDue() && !finished()) (void)StartWorker();
  }

  void JobStarted(pid_t pid) {
    job_pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (job_pidfd_) worker_.Queue(JobStartedMessage());
    Poll();
  }

  void Wake() {
    wake_owed_ = true;
    worker_.Queue({MessageKind::kWake, 0, "", {}});
    Poll();
  }

  void Sleep() {
    wake_owed_ = false;
    worker_.Queue({MessageKind::kSleep, 0, "", {}});
    Poll();
  }

  void Detached(pid_t pid) {
    EndImages(pid, MonotonicNs());
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
    worker_.Queue(JobEndedMessage());
    Poll();
  }

  absl::Status WaitUntilDelivered(absl::Duration timeout, absl::Duration patience) {
    Patience waiting(timeout, patience);
    while (!worker_.delivered()) {
      Poll();
      if (worker_.delivered()) break;
      const WorkerStatus& said = worker_.status();
      absl::Duration left =
          waiting.Left(worker_.Progress(), said.naming && said.upstream.ok());
      if (job_ended_ && said.refused) return Undelivered(said.upstream);
      if (abandoned_ || left <= absl::ZeroDuration()) {
        return Undelivered(absl::DeadlineExceededError(
            said.upstream.ok() ? "the collector has not acknowledged everything in time"
                               : std::string(said.upstream.message())));
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
    if (finished()) return Close();
    abandoned_ = true;
    worker_.Leave();
    Close(/*left=*/true);
  }

  void Abandon() {
    if (finished()) return Close();
    abandoned_ = true;
    socket_->Unlink();
    worker_.Abandon();
    Close();
  }

  RelayStatus status() const {
    RelayStatus status;
    status.targets = targets_;
    for (const auto& [key, segment] : segments_) {
      if (!segment.image_ended_by_ns && segment.pidfd &&
          !IsReadable(segment.pidfd.get())) {
        ++status.live_targets;
      }
    }
    status.refused = refused_ + (handshakes_ != nullptr ? handshakes_->refused() : 0);
    status.worker_restarts = worker_.restarts();
    const WorkerStatus& said = worker_.status();
    status.corrupt_segments = said.corrupt_segments;
    status.events_read = said.events_read;
    status.events_lost = said.events_lost;
    status.batches_spooled = said.batches_spooled;
    status.batches_acknowledged = said.batches_acknowledged;
    status.armed = said.armed;
    status.connected = said.connected;
    status.upstream = said.upstream;
    return status;
  }

  pid_t worker_pid() const { return worker_.pid(); }

 private:
  struct Segment {
    pid_t pid = 0;
    UniqueFd memfd;
    UniqueFd pidfd;
    UniqueFd memory;
    std::string info;  // serialised ProcessInfo
    std::optional<uint64_t> image_ended_by_ns;
  };

  bool finished() const { return worker_.delivered() || abandoned_; }

  void Watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
    }
  }

  bool Accept(Newcomer newcomer) {
    if (options_.job.settings()
            .no_host_samples()) {  // of a lull around ours, or within
      if (newcomer.loader) return false;
      newcomer.memory.reset();
    }
    // Before the Welcome: a process that is to sleep records nothing, not once.
    if (finished() || !PrepareControl(worker_.status().gpu, worker_.status().armed,
                                      MonotonicNs(), newcomer.memfd.get())) {
      return false;
    }
    // The same pid again: it has called exec, the old image writes no more.
    if (newcomer.pid > 0) EndImages(newcomer.pid, CreatedNs(newcomer.memfd.get()));
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
    worker_.Queue({MessageKind::kUnrecorded, unrecorded, "", {}});
  }

  // Targets of an attach have all come when it begins, on a socket that may lie in
  // their own folders.
  void CheckSocket() {
    if (options_.attached || finished() || !socket_->Check(MonotonicNs())) return;
    refused_ += handshakes_->refused();
    unrecorded_ += handshakes_->unrecorded();
    handshakes_ =
        std::make_unique<HandshakeListener>(socket_->fd(), options_.target_user);
    Watch(handshakes_->fd());
    // A copy: the next socket may come before this one is sent. Without a descriptor
    // for it the worker makes one of its own, should it be left alone.
    Message message{MessageKind::kListener, socket_->unreachable_ns(MonotonicNs()), ""};
    message.fds.emplace_back(fcntl(socket_->fd(), F_DUPFD_CLOEXEC, 0));
    if (message.fds[0]) worker_.Queue(std::move(message));
  }

  void EndImages(pid_t pid, uint64_t by_ns) {
    for (auto& [key, segment] : segments_) {
      if (segment.pid != pid || segment.image_ended_by_ns) continue;
      segment.image_ended_by_ns = by_ns;
      worker_.Queue(ImageEndedMessage(key, by_ns));
    }
  }

  static Message ImageEndedMessage(uint64_t key, uint64_t by_ns) {
    return {MessageKind::kImageEnded, key, absl::StrCat(by_ns), {}};
  }

  void QueueSegment(uint64_t key, const Segment& segment) {
    Message message{MessageKind::kSegment, key, segment.info};
    message.lent.push_back(segment.memfd.get());  // until the worker releases it
    if (segment.pidfd) message.lent.push_back(segment.pidfd.get());
    if (segment.pidfd && segment.memory) message.lent.push_back(segment.memory.get());
    worker_.Queue(std::move(message));
    if (segment.image_ended_by_ns) {
      worker_.Queue(ImageEndedMessage(key, *segment.image_ended_by_ns));
    }
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

  // How many batches these are is not known: the worker may be reading the last events
  // yet.
  absl::Status Undelivered(const absl::Status& why) const {
    return absl::Status(why.code(),
                        absl::StrCat(why.message(), "; what is not delivered stays in ",
                                     options_.spool_directory));
  }

  void Close(bool left = false) {
    if (socket_ == nullptr) return;
    worker_.End();
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
  UniqueFd pulse_;  // once a second, so that Poll() is called
  WorkerLink worker_;
  std::map<uint64_t, Segment> segments_;
  uint64_t next_key_ = 1;
  UniqueFd job_pidfd_;
  bool job_ended_ = false;
  int exit_status_ = -1;
  uint64_t unreachable_ns_ = 0;  // as of the end of the job
  bool abandoned_ = false;
  bool wake_owed_ = false;  // asked for, and not heeded yet
  uint32_t targets_ = 0;
  uint32_t told_unrecorded_ = 0;  // to the present worker
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
