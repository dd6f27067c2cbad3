// The keeper's end of its worker: the process, what is on the way to it, and when a
// worker that died is started again. It never blocks, but for End().
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/process/channel.h"
#include "daemon/relay/process/worker_process.h"

namespace lull::relay {

class WorkerLink {
 public:
  using Starter = std::function<absl::StatusOr<WorkerProcess>()>;

  // `epoll` becomes readable when Receive(), Flush() or a restart has something to do.
  WorkerLink(int epoll, Starter starter);

  // Starts the first worker, or another one. Nothing is on the way to it yet. Where
  // that is not possible, it is due again later.
  absl::Status Start();
  bool running() const { return worker_.pid > 0; }
  pid_t pid() const { return worker_.pid; }  // -1 between two workers
  // There is no worker, and it has been long enough since the last one died.
  bool RestartIsDue() const;
  uint32_t restarts() const { return starts_ == 0 ? 0 : starts_ - 1; }

  // While there is no worker, nothing is queued: its successor is told everything.
  void Queue(Message message);
  // True when nothing is left to send.
  bool Flush();
  // Hands out what the worker says, but for what is kept here.
  void Receive(absl::FunctionRef<void(const Message&)> on_message);
  // As the worker last said, or the one before it.
  const WorkerStatus& status() const { return status_; }
  void set_status(WorkerStatus status) { status_ = std::move(status); }
  bool delivered() const { return delivered_; }
  // Grows as long as anything goes on.
  uint64_t Progress() const;

  // Waits until the worker, which is ending, is gone; kills it when it takes too long.
  void End();
  // Tells the worker to stop, and waits as End() does.
  void Abandon();
  // Goes without the worker, which sees that and goes on alone.
  void Leave();

 private:
  void Ended();
  void SetTimer(uint64_t at_ns);

  const int epoll_;
  const Starter starter_;
  UniqueFd timer_;
  WorkerProcess worker_;
  std::deque<Message> outgoing_;
  WorkerStatus status_;
  bool delivered_ = false;
  uint32_t starts_ = 0;
  uint64_t started_ns_ = 0;
  uint64_t restart_at_ns_ = 0;
  uint64_t restart_delay_ns_;
};

}  // namespace lull::relay
