#include "tests/sim/engine/host_executor.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "tests/sim/engine/clock.h"

namespace lull::sim {

void HostExecutor::run(const OpPtr& op) {
  std::lock_guard lock(mutex_);
  waiting_.push_back(op);
  __atomic_fetch_add(&changes_, 1, __ATOMIC_RELEASE);
  futex_wake_all(&changes_);
  if (started_) return;
  started_ = true;
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  auto entry = [](void* self) -> void* { static_cast<HostExecutor*>(self)->loop(); };
  if (pthread_create(&thread, nullptr, entry, this) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

OpPtr HostExecutor::next() {
  std::lock_guard lock(mutex_);
  if (waiting_.empty()) return nullptr;
  auto first = std::min_element(
      waiting_.begin(), waiting_.end(),
      [](const OpPtr& a, const OpPtr& b) { return a->ready_ns < b->ready_ns; });
  OpPtr op = *first;
  waiting_.erase(first);
  return op;
}

void HostExecutor::loop() {
  for (;;) {
    uint32_t seen = __atomic_load_n(&changes_, __ATOMIC_ACQUIRE);
    OpPtr op = next();
    if (op == nullptr) {
      futex_wait(&changes_, seen);
      continue;
    }
    sleep_until(op->ready_ns);
    int64_t start = now_ns();
    op->spec.host_function();
    finished_(op, start, now_ns());
  }
}

}  // namespace lull::sim
