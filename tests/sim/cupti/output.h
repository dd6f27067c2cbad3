// The client's buffers: asking for them, filling them, giving them back.
//
// A record goes into the buffer of its lane: one lane for what devices did, and one
// for each thread's own records where the per-thread attribute is on, else the same
// one. A buffer that is full is given back by the worker thread, all others by a flush.
// The callback that asks for a buffer runs with the mutex held, as in the real library:
// a client whose callback takes a lock that it holds in another call deadlocks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace lull::sim::cupti {

using RequestCallback = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using CompleteCallback = void (*)(void* context, uint32_t stream, uint8_t* buffer,
                                  size_t size, size_t valid);

inline constexpr uint32_t kDeviceLane = 0;  // threads: their id

class Output {
 public:
  explicit Output(uint32_t version) : version_(version) {}

  std::mutex& mutex() { return mutex_; }

  // --- with the mutex held ----------------------------------------------------
  void set_callbacks(RequestCallback request, CompleteCallback complete);
  bool has_callbacks() const { return request_ != nullptr; }

  // Appends the first `size` bytes of a record, or counts it as dropped.
  void write(uint32_t lane, const void* record, size_t size);

  // Hands every buffer that holds a record to the next delivery. False: there is none.
  bool close_all();
  // Forgets buffers and callbacks without giving anything back.
  void forget();

  size_t take_dropped();
  std::atomic<bool> zeroed_by_client{false};  // CUPTI need not clear buffers
  std::atomic<bool> per_thread{false};

  // --- without ------------------------------------------------------------------
  // Gives back what is closed. When it returns the client has had every buffer that
  // was closed before, from this thread or from the worker.
  void deliver();
  // Starts the thread that does so when a buffer is full. Once.
  void start_worker(void (*tick)());
  // The worker calls its `tick` this often; 0: never.
  void set_period(int64_t ms);

 private:
  struct Buffer {
    uint8_t* bytes = nullptr;
    size_t size = 0, used = 0, records = 0, max_records = 0;
  };

  Buffer* room(uint32_t lane, size_t size);
  bool request(Buffer* buffer);
  void close(Buffer* buffer);
  [[noreturn]] void work();

  const uint32_t version_;
  std::mutex mutex_;
  std::mutex delivery_;  // one delivery at a time; taken before mutex_
  std::condition_variable changed_;
  RequestCallback request_ = nullptr;
  CompleteCallback complete_ = nullptr;
  std::unordered_map<uint32_t, Buffer> open_;
  std::deque<Buffer> closed_;
  size_t dropped_ = 0;
  int64_t period_ms_ = 0;
  void (*tick_)() = nullptr;
};

// True on a thread that is inside one of the client's callbacks.
bool in_client();

// Ends the process: the client did what may crash or hang the real library.
[[noreturn]] void misuse(const char* what);

}  // namespace lull::sim::cupti
