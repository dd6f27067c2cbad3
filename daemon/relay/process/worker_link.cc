#include "daemon/relay/process/worker_link.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/base/clock.h"

namespace lull::relay {
namespace {

// A worker that dies at once is not started again at once.
constexpr uint64_t kFirstRestartDelayNs = 10'000'000;
constexpr uint64_t kLongestRestartDelayNs = 2'000'000'000;
constexpr uint64_t kStableNs = 5'000'000'000;
constexpr int kEndPatienceMs = 2000;
constexpr int kDeadPatienceMs = 100;
constexpr uint64_t kWorkNs = 100'000'000;  // of CPU: more than looking around takes

void Watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

WorkerLink::WorkerLink(int epoll, Starter starter)
    : epoll_(epoll),
      starter_(std::move(starter)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      restart_delay_ns_(kFirstRestartDelayNs) {
  Watch(epoll_, timer_.get());
}

absl::Status WorkerLink::Start() {
  ++starts_;
  absl::StatusOr<WorkerProcess> worker = starter_();
  if (!worker.ok()) {
    restart_at_ns_ = MonotonicNs() + kLongestRestartDelayNs;
    SetTimer(restart_at_ns_);
    return worker.status();
  }
  worker_ = *std::move(worker);
  started_ns_ = MonotonicNs();
  outgoing_.clear();
  Watch(epoll_, worker_.channel.get());
  return absl::OkStatus();
}

bool WorkerLink::RestartIsDue() const {
  return !running() && MonotonicNs() >= restart_at_ns_;
}

void WorkerLink::Queue(Message message) {
  if (running()) outgoing_.push_back(std::move(message));
}

bool WorkerLink::Flush() {
  while (running() && !outgoing_.empty()) {
    ChannelResult result = Send(worker_.channel.get(), outgoing_.front());
    if (result == ChannelResult::kClosed) break;  // Receive() sees to it
    if (result == ChannelResult::kWouldBlock) {
      SetTimer(MonotonicNs() + 1'000'000);
      return false;
    }
    outgoing_.pop_front();
  }
  return outgoing_.empty();
}

void WorkerLink::Receive(absl::FunctionRef<void(const Message&)> on_message) {
  uint64_t expirations;
  while (read(timer_.get(), &expirations, sizeof(expirations)) > 0) {
  }
  Message message;
  while (running()) {
    ChannelResult result = relay::Receive(worker_.channel.get(), &message);
    if (result == ChannelResult::kWouldBlock) return;
    if (result == ChannelResult::kClosed) return Ended();
    if (message.kind == MessageKind::kStatus) {
      DecodeStatus(message.body, &status_);
    } else if (message.kind == MessageKind::kDelivered) {
      delivered_ = true;
    } else {
      on_message(message);
    }
  }
}

void WorkerLink::Ended() {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, worker_.channel.get(), nullptr);
  // Its channel is closed, so it is ending; it has no other way to go on.
  ReapWorkerProcess(worker_.pid, delivered_ ? kEndPatienceMs : kDeadPatienceMs);
  worker_ = WorkerProcess();
  outgoing_.clear();
  uint64_t now = MonotonicNs();
  restart_delay_ns_ = now - started_ns_ > kStableNs
                          ? kFirstRestartDelayNs
                          : std::min(restart_delay_ns_ * 2, kLongestRestartDelayNs);
  restart_at_ns_ = now + restart_delay_ns_;
  SetTimer(restart_at_ns_);
}

void WorkerLink::SetTimer(uint64_t at_ns) {
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(at_ns / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(at_ns % 1'000'000'000);
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

uint64_t WorkerLink::Progress() const {
  return status_.events_read + status_.batches_spooled + status_.batches_acknowledged +
         WorkerCpuNs(worker_.pid) / kWorkNs;
}

void WorkerLink::End() {
  if (!running()) return;
  ReapWorkerProcess(worker_.pid, kEndPatienceMs);
  worker_ = WorkerProcess();
}

void WorkerLink::Abandon() {
  if (!running()) return;
  outgoing_.push_back({MessageKind::kAbandon, 0, "", {}});
  uint64_t until = MonotonicNs() + kEndPatienceMs * 1'000'000ull;
  while (!Flush() && MonotonicNs() < until) {
    pollfd entry{worker_.channel.get(), POLLOUT, 0};
    poll(&entry, 1, 10);
  }
  End();
}

void WorkerLink::Leave() {
  Flush();
  worker_ = WorkerProcess();  // the worker sees that its channel is closed
}

}  // namespace lull::relay
