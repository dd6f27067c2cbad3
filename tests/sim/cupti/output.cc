#include "tests/sim/cupti/output.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lull::sim::cupti {
namespace {

constexpr uint32_t kMayRefuse = 27;  // before this version a refusal may crash
constexpr size_t kAlignment = 8;

thread_local bool t_in_client = false;

class ClientCall {
 public:
  ClientCall() { t_in_client = true; }
  ~ClientCall() { t_in_client = false; }
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;
};

}  // namespace

bool in_client() { return t_in_client; }

void misuse(const char* what) {
  fprintf(stderr, "simulated CUPTI: %s\n", what);
  abort();
}

void Output::set_callbacks(RequestCallback request, CompleteCallback complete) {
  request_ = request;
  complete_ = complete;
}

void Output::write(uint32_t lane, const void* record, size_t size) {
  Buffer* buffer = room(per_thread ? lane : kDeviceLane, size);
  if (buffer == nullptr) {
    ++dropped_;
    return;
  }
  std::memcpy(buffer->bytes + buffer->used, record, size);
  buffer->used += size;
  ++buffer->records;
}

Output::Buffer* Output::room(uint32_t lane, size_t size) {
  Buffer& buffer = open_[lane];
  bool full = buffer.size - buffer.used < size ||
              (buffer.max_records != 0 && buffer.records == buffer.max_records);
  if (buffer.bytes != nullptr && full) {
    close(&buffer);
    changed_.notify_one();
  }
  if (buffer.bytes == nullptr && !request(&buffer)) return nullptr;
  return buffer.size - buffer.used < size ? nullptr : &buffer;
}

bool Output::request(Buffer* buffer) {
  if (request_ == nullptr) return false;
  Buffer fresh;
  {
    ClientCall call;
    request_(&fresh.bytes, &fresh.size, &fresh.max_records);
  }
  if (fresh.bytes == nullptr) {
    if (version_ < kMayRefuse) misuse("crashes: the client refused a buffer");
    return false;
  }
  if (reinterpret_cast<uintptr_t>(fresh.bytes) % kAlignment != 0) {
    misuse("the client's buffer is not aligned to 8 bytes");
  }
  if (!zeroed_by_client) std::memset(fresh.bytes, 0, fresh.size);
  *buffer = fresh;
  return true;
}

void Output::close(Buffer* buffer) {
  closed_.push_back(*buffer);
  *buffer = {};
}

bool Output::close_all() {
  for (auto& [lane, buffer] : open_) {
    if (buffer.used != 0) close(&buffer);
  }
  return !closed_.empty();
}

void Output::forget() {
  open_.clear();
  closed_.clear();
  dropped_ = 0;
  request_ = nullptr;
  complete_ = nullptr;
}

size_t Output::take_dropped() {
  size_t dropped = dropped_;
  dropped_ = 0;
  return dropped;
}

void Output::deliver() {
  std::lock_guard delivery(delivery_);
  for (;;) {
    Buffer buffer;
    CompleteCallback complete;
    {
      std::lock_guard lock(mutex_);
      if (closed_.empty() || complete_ == nullptr) return;
      buffer = closed_.front();
      closed_.pop_front();
      complete = complete_;
    }
    ClientCall call;
    complete(nullptr, 0, buffer.bytes, buffer.size, buffer.used);
  }
}

void Output::start_worker(void (*tick)()) {
  {
    std::lock_guard lock(mutex_);
    if (tick_ != nullptr) return;
    tick_ = tick;
  }
  // The program's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  auto entry = [](void* self) -> void* { static_cast<Output*>(self)->work(); };
  if (pthread_create(&thread, nullptr, entry, this) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Output::set_period(int64_t ms) {
  std::lock_guard lock(mutex_);
  period_ms_ = ms;
  changed_.notify_one();
}

void Output::work() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      auto ready = [this] { return !closed_.empty() && complete_ != nullptr; };
      if (period_ms_ != 0) {
        changed_.wait_for(lock, std::chrono::milliseconds(period_ms_), ready);
      } else {
        changed_.wait(lock, [&] { return ready() || period_ms_ != 0; });
      }
    }
    tick_();
    deliver();
  }
}

}  // namespace lull::sim::cupti
