#include "daemon/collector/serve/export_watch.h"

#include "daemon/base/clock.h"

namespace lull::collector {

ExportWatch::ExportWatch(absl::Duration patience)
    : patience_(patience), thread_([this] { Run(); }) {}

ExportWatch::~ExportWatch() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    stopped_.notify_all();
  }
  thread_.join();
}

void ExportWatch::Run() {
  const auto tick = absl::ToChronoNanoseconds(patience_ / 4);
  MutexLock lock(mutex_);
  while (!stop_) {
    stopped_.wait_for(lock.native(), tick);
    const uint64_t now_ns = MonotonicNs();
    for (Ticket* ticket : tickets_) {
      const uint64_t since_ns = ticket->writing_since_ns_;
      if (since_ns == 0 || now_ns < since_ns) continue;
      // Its Write() returns, and it ends.
      if (absl::Nanoseconds(now_ns - since_ns) > patience_) {
        ticket->context_->TryCancel();
      }
    }
  }
}

ExportWatch::Ticket::Ticket(ExportWatch* watch, grpc::ServerContext* context)
    : watch_(*watch), context_(context) {
  MutexLock lock(watch_.mutex_);
  if (watch_.tickets_.size() >= kMost) return;
  admitted_ = true;
  watch_.tickets_.insert(this);
}

ExportWatch::Ticket::~Ticket() {
  MutexLock lock(watch_.mutex_);
  watch_.tickets_.erase(this);
}

void ExportWatch::Ticket::SetWriting(bool writing) {
  MutexLock lock(watch_.mutex_);
  writing_since_ns_ = writing ? MonotonicNs() : 0;
}

}  // namespace lull::collector
