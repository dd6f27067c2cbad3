// The simulated driver's heart: one per process, shared by every library on top.
//
// It turns "do this on that stream" into operations with dependencies (stream
// order, the NULL stream's implicit order, events, captures), hands them to the
// Timeline, and writes down what happened. The API layers translate arguments,
// choose which calls block, and return error codes.
//
// Methods that block take the lock themselves and wait without it; the others
// say what they need. Never destroyed: exit handlers of the program may still
// call in.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "tests/sim/engine/config.h"
#include "tests/sim/engine/exchange.h"
#include "tests/sim/engine/host_executor.h"
#include "tests/sim/engine/memory.h"
#include "tests/sim/engine/objects.h"
#include "tests/sim/engine/thread.h"
#include "tests/sim/engine/timeline.h"
#include "tests/sim/engine/truth_log.h"

namespace lull::sim {

// Error numbers that the driver and the runtime API share.
enum Error : int {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
};

// What the NULL handle means: depends on how the program was compiled.
enum class DefaultStream { kLegacy, kPerThread };

// Handles given out and not yet destroyed.
template <typename T>
class HandleTable {
 public:
  T* add(std::shared_ptr<T> object) {
    T* handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }
  std::shared_ptr<T> find(const void* handle) const {
    auto it = objects_.find(static_cast<T*>(const_cast<void*>(handle)));
    return it == objects_.end() ? nullptr : it->second;
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [handle, object] : objects_) visit(*object);
  }
  bool remove(const void* handle) {
    return objects_.erase(static_cast<T*>(const_cast<void*>(handle))) != 0;
  }

 private:
  std::unordered_map<T*, std::shared_ptr<T>> objects_;
};

// Where in a launch of which graph an operation belongs.
struct GraphPlace {
  uint64_t exec = 0;  // id; 0: in none
  uint64_t node = 0;
  bool end = false;       // the marker after the last node
  int64_t launch_ns = 0;  // when the device learned of the graph; 0: now
};

class Engine {
 public:
  // The engine, once start() was called and unless this is a fork child of a
  // process that called it; else null.
  static Engine* get();
  // kOk, or kNotInitialized in a fork child of an initialised process.
  static int start();

  Config& config() { return config_; }
  TruthLog& log() { return log_; }
  std::mutex& mutex() { return mutex_; }
  uint64_t new_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t newest_id() const { return next_id_.load(std::memory_order_relaxed) - 1; }

  // --- with the lock held ---------------------------------------------------
  MemoryMap memory;
  HandleTable<Context> contexts;
  HandleTable<Stream> streams;
  HandleTable<Event> events;
  HandleTable<Module> modules;
  HandleTable<Linking> linkings;
  HandleTable<Graph> graphs;
  HandleTable<GraphExec> graph_execs;
  // Functions stay: graphs and the log refer to them after their module is gone.
  std::vector<std::shared_ptr<Module>> unloaded;
  // Contexts too: streams that the program still holds point to theirs.
  std::vector<std::shared_ptr<Context>> destroyed;

  Context* primary_context(uint32_t device);
  bool has_primary_context(uint32_t device) const { return primary_.contains(device); }
  Context* create_context(uint32_t device, unsigned flags);
  std::shared_ptr<Stream> create_stream(Context* context, bool blocking, int priority);

  // The stream that a handle means in the calling thread's context; null if it
  // is none.
  std::shared_ptr<Stream> stream(const void* handle, DefaultStream null_means);

  // Appends an operation to a stream, or to the graph that it captures into. In
  // the first case `*op` is what to wait for, in the second null.
  int enqueue(const std::shared_ptr<Stream>& stream, OpSpec spec, OpPtr* op = nullptr);

  int record_event(const std::shared_ptr<Event>& event,
                   const std::shared_ptr<Stream>& stream);
  int wait_event(const std::shared_ptr<Stream>& stream,
                 const std::shared_ptr<Event>& event);

  int launch_graph(const std::shared_ptr<Stream>& stream, GraphExec* exec);

  // What `stream` (or the whole context) has to do before it is idle.
  std::vector<OpPtr> unfinished(const Stream& stream) const;
  std::vector<OpPtr> unfinished(const Context& context) const;
  std::vector<OpPtr> unfinished_on_device(uint32_t device) const;

  // For a stream whose handle goes while it works: device-wide waits still see it.
  void keep_until_done(std::shared_ptr<Stream> stream);

  // A capture under way forbids the calling thread calls that might synchronise
  // (cudaMalloc, event queries, ...): kCaptureUnsupported, and the capture is
  // spoilt. kOk otherwise.
  int check_capture();
  std::shared_ptr<Capture> begin_capture(Stream* stream, CaptureMode mode,
                                         std::shared_ptr<Graph> graph);
  int end_capture(Stream* stream, std::shared_ptr<Graph>* graph);

  // --- without the lock -------------------------------------------------------
  // Blocks until all of `ops` have ended; adds to the call's blocked time.
  void wait(std::span<const OpPtr> ops);
  // Blocks while the stream has as many launches pending as the queue holds.
  void wait_for_room(const std::shared_ptr<Stream>& stream);
  // What became of the exchange `kernel`, whose end was not known when it began.
  void finish_exchange(uint64_t kernel, const Exchanged& exchanged);
  // Blocks until the last exchange of `member` has ended, and forgets it.
  void end_exchanges(const void* member);

 private:
  Engine();
  OpPtr submit(Stream* stream, OpSpec spec, std::span<const OpPtr> after,
               const GraphPlace& graph = {});
  std::vector<OpPtr> stream_dependencies(const Stream& stream) const;
  int64_t duration(const OpSpec& spec);
  void log_op(const Op& op);
  int64_t begin_exchange(const OpPtr& op);

  Config config_;
  TruthLog log_;
  std::mutex mutex_;
  std::atomic<uint64_t> next_id_{1};
  HostExecutor executor_;
  Timeline timeline_;
  std::unordered_map<uint32_t, Context*> primary_;
  std::vector<std::weak_ptr<Capture>> captures_;
  std::vector<std::shared_ptr<Stream>> leaving_;
  uint64_t exchanges_ = 0;
  std::unordered_map<uint64_t, OpPtr> exchanging_;         // without an end
  std::unordered_map<const void*, OpPtr> last_exchanges_;  // by member
};

}  // namespace lull::sim
