#include "tests/sim/engine/engine.h"

#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "tests/sim/engine/clock.h"
#include "tests/sim/engine/observer.h"

namespace lull::sim {
namespace {

std::atomic<Engine*> g_engine{nullptr};
std::atomic<bool> g_forked{false};

constexpr uintptr_t kLegacyHandle = 1;     // CU_STREAM_LEGACY
constexpr uintptr_t kPerThreadHandle = 2;  // CU_STREAM_PER_THREAD

// As on the real device: a process that initialised the driver leaves its
// children none. The parent's log is not the child's.
void after_fork_in_child() {
  Engine* engine = g_engine.exchange(nullptr);
  if (engine == nullptr) return;
  g_forked.store(true);
  engine->log().abandon();
}

}  // namespace

Engine* Engine::get() { return g_engine.load(std::memory_order_acquire); }

int Engine::start() {
  if (get() != nullptr) return kOk;
  if (g_forked.load()) return kNotInitialized;
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    g_engine.store(new Engine, std::memory_order_release);
  });
  return kOk;
}

Engine::Engine()
    : config_(config_from_environment()),
      executor_([this](const OpPtr& op, int64_t start, int64_t end) {
        std::lock_guard lock(mutex_);
        timeline_.finish(op, start, end);
      }),
      timeline_(config_, {[this](const Op& op) {
                            log_op(op);
                            notify_op(op);
                          },
                          [this](const OpPtr& op) { executor_.run(op); },
                          [this](const OpPtr& op) { return begin_exchange(op); }}) {
  if (!log_.open_from_environment()) {
    fprintf(stderr, "simulated device: cannot write LULL_SIM_LOG\n");
    _exit(97);
  }
}

Context* Engine::create_context(uint32_t device, unsigned flags) {
  auto context = std::make_shared<Context>();
  context->id = new_id();
  context->device = device;
  context->flags = flags;
  context->legacy = std::make_shared<Stream>();
  context->legacy->context = context.get();
  context->legacy->legacy = true;
  notify_context(context->id, device);
  return contexts.add(std::move(context));
}

Context* Engine::primary_context(uint32_t device) {
  Context*& context = primary_[device];
  if (context == nullptr) {
    context = create_context(device, 0);
    context->primary = true;
  }
  return context;
}

std::shared_ptr<Stream> Engine::create_stream(Context* context, bool blocking,
                                              int priority) {
  auto stream = std::make_shared<Stream>();
  stream->id = new_id();
  stream->context = context;
  stream->blocking = blocking;
  stream->priority = priority;
  std::erase_if(context->streams, [](const auto& weak) { return weak.expired(); });
  context->streams.push_back(stream);
  return stream;
}

std::shared_ptr<Stream> Engine::stream(const void* handle, DefaultStream null_means) {
  Context* context = this_thread().context();
  auto value = reinterpret_cast<uintptr_t>(handle);
  if (value == 0) {
    value = null_means == DefaultStream::kLegacy ? kLegacyHandle : kPerThreadHandle;
  }
  if (value > kPerThreadHandle) return streams.find(handle);
  if (context == nullptr) return nullptr;
  if (value == kLegacyHandle) return context->legacy;
  auto& mine = context->per_thread[this_thread().tid];
  if (mine == nullptr) mine = create_stream(context, true, 0);
  return mine;
}

std::vector<OpPtr> Engine::stream_dependencies(const Stream& stream) const {
  std::vector<OpPtr> before;
  if (stream.tail != nullptr) before.push_back(stream.tail);
  if (stream.legacy) {
    for (const auto& weak : stream.context->streams) {
      auto other = weak.lock();
      if (other && other->blocking && other->tail) before.push_back(other->tail);
    }
  } else if (stream.blocking && stream.context->legacy->tail) {
    before.push_back(stream.context->legacy->tail);
  }
  return before;
}

int64_t Engine::duration(const OpSpec& spec) {
  if (spec.duration_ns >= 0) return spec.duration_ns;
  auto transfer = [&](double gbps) {
    return config_.copy_latency_ns + llround(static_cast<double>(spec.bytes) / gbps);
  };
  switch (spec.kind) {
    case OpKind::kKernel:
      if (spec.exchange != nullptr) {
        return config_.kernel_duration(spec.function->name,
                                       config_.exchange_duration(spec.exchange->moved));
      }
      return config_.kernel_duration(spec.function->name);
    case OpKind::kMemset:
      return transfer(config_.d2d_gbps);
    case OpKind::kCopy:
      switch (spec.copy) {
        case CopyKind::kH2D:
          return transfer(config_.h2d_gbps);
        case CopyKind::kD2H:
          return transfer(config_.d2h_gbps);
        case CopyKind::kD2D:
          return transfer(config_.d2d_gbps);
        case CopyKind::kH2H:
          return transfer(config_.host_gbps);
      }
      return 0;
    default:
      return 0;
  }
}

OpPtr Engine::submit(Stream* stream, OpSpec spec, std::span<const OpPtr> after,
                     const GraphPlace& graph) {
  ThreadState& thread = this_thread();
  auto op = std::make_shared<Op>();
  op->spec = std::move(spec);
  op->spec.duration_ns = duration(op->spec);
  op->device = stream->context->device;
  op->context = stream->context->id;
  op->stream = stream->id;
  op->tid = thread.tid;
  op->correlation = thread.correlation;
  op->graph = graph.exec;
  op->graph_node = graph.node;
  op->graph_end = graph.end;
  op->submit_ns = graph.launch_ns != 0 ? graph.launch_ns : now_ns();
  if (op->spec.exchange == nullptr) {
    timeline_.submit(op, after);
    return op;
  }
  // The exchanges of one member come one after another, on whatever streams.
  OpPtr& last = last_exchanges_[op->spec.exchange->member];
  std::vector<OpPtr> before(after.begin(), after.end());
  before.push_back(last);
  last = op;
  timeline_.submit(op, before);
  return op;
}

int Engine::enqueue(const std::shared_ptr<Stream>& stream, OpSpec spec, OpPtr* op) {
  ThreadState& thread = this_thread();
  if (spec.kind == OpKind::kKernel && thread.next_kernel_ns >= 0) {
    spec.duration_ns = thread.next_kernel_ns;
    thread.next_kernel_ns = -1;
  } else if (spec.kind == OpKind::kKernel && thread.next_kernel_work_ns >= 0) {
    spec.duration_ns =
        config_.kernel_duration(spec.function->name, thread.next_kernel_work_ns);
  }
  if (spec.kind == OpKind::kKernel) {
    thread.next_kernel_work_ns = -1;
    spec.exchange = std::exchange(thread.next_exchange, nullptr);
    if (spec.exchange != nullptr) spec.bytes = spec.exchange->bytes;
  }
  if (stream->capture != nullptr) {
    if (stream->capture->invalid) return kCaptureInvalidated;
    Graph* graph = stream->capture->graph.get();
    graph->nodes.push_back(std::make_unique<GraphNode>(
        GraphNode{graph, std::move(spec), stream->capture_tail}));
    stream->capture_tail = {graph->nodes.back().get()};
    if (op != nullptr) *op = nullptr;
    return kOk;
  }
  // The NULL stream waits for every blocking stream: not while one captures.
  if (stream->legacy) {
    for (const auto& weak : stream->context->streams) {
      auto other = weak.lock();
      if (!other || !other->blocking || !other->capture) continue;
      if (other->capture->mode == CaptureMode::kRelaxed) continue;
      other->capture->invalid = true;
      return kCaptureImplicit;
    }
  }
  bool launch = spec.kind == OpKind::kKernel;
  stream->tail = submit(stream.get(), std::move(spec), stream_dependencies(*stream));
  if (launch) stream->pending.push_back(stream->tail);
  if (op != nullptr) *op = stream->tail;
  return kOk;
}

int Engine::record_event(const std::shared_ptr<Event>& event,
                         const std::shared_ptr<Stream>& stream) {
  if (stream->capture != nullptr) {
    if (stream->capture->invalid) return kCaptureInvalidated;
    event->capture = stream->capture;
    event->capture_nodes = stream->capture_tail;
    return kOk;
  }
  OpSpec spec;
  spec.kind = OpKind::kEventRecord;
  spec.handle = event->id;
  event->capture = nullptr;
  return enqueue(stream, std::move(spec), &event->recorded);
}

int Engine::wait_event(const std::shared_ptr<Stream>& stream,
                       const std::shared_ptr<Event>& event) {
  if (event->capture != nullptr) {
    if (!event->capture->active) return kCapturedEvent;
    if (stream->capture != nullptr && stream->capture != event->capture) {
      return kCaptureMerge;
    }
    stream->capture = event->capture;
    stream->capture_tail.insert(stream->capture_tail.end(),
                                event->capture_nodes.begin(),
                                event->capture_nodes.end());
    return kOk;
  }
  // An event recorded outside orders nothing inside a graph.
  if (stream->capture != nullptr) return kOk;
  if (event->recorded == nullptr) return kOk;
  OpSpec spec;
  spec.kind = OpKind::kEventWait;
  spec.handle = event->id;
  std::vector<OpPtr> before = stream_dependencies(*stream);
  before.push_back(event->recorded);
  stream->tail = submit(stream.get(), std::move(spec), before);
  return kOk;
}

int Engine::launch_graph(const std::shared_ptr<Stream>& stream, GraphExec* exec) {
  if (stream->capture != nullptr) return kCaptureUnsupported;
  // The device learns of all nodes at once, however long we take to put them down.
  const int64_t launch_ns = now_ns();
  OpPtr begin = submit(stream.get(), OpSpec{}, stream_dependencies(*stream),
                       {.exec = exec->id, .launch_ns = launch_ns});
  std::unordered_map<const GraphNode*, OpPtr> submitted;
  std::vector<OpPtr> all{begin};
  for (const auto& node : exec->graph.nodes) {
    std::vector<OpPtr> before;
    for (const GraphNode* earlier : node->after) before.push_back(submitted[earlier]);
    if (before.empty()) before.push_back(begin);
    // Ids as CUPTI makes them: the graph in the upper half.
    OpPtr op = submit(stream.get(), node->spec, before,
                      {.exec = exec->id,
                       .node = exec->id << 32 | submitted.size(),
                       .launch_ns = launch_ns});
    submitted[node.get()] = op;
    all.push_back(op);
  }
  stream->tail = submit(stream.get(), OpSpec{}, all,
                        {.exec = exec->id, .end = true, .launch_ns = launch_ns});
  return kOk;
}

std::vector<OpPtr> Engine::unfinished(const Stream& stream) const {
  return stream_dependencies(stream);
}

std::vector<OpPtr> Engine::unfinished(const Context& context) const {
  std::vector<OpPtr> ops;
  if (context.legacy->tail) ops.push_back(context.legacy->tail);
  for (const auto& weak : context.streams) {
    auto stream = weak.lock();
    if (stream && stream->tail) ops.push_back(stream->tail);
  }
  return ops;
}

std::vector<OpPtr> Engine::unfinished_on_device(uint32_t device) const {
  std::vector<OpPtr> ops;
  contexts.for_each([&](const Context& context) {
    if (context.device != device) return;
    std::vector<OpPtr> more = unfinished(context);
    ops.insert(ops.end(), more.begin(), more.end());
  });
  return ops;
}

void Engine::keep_until_done(std::shared_ptr<Stream> stream) {
  int64_t now = now_ns();
  std::erase_if(leaving_,
                [now](const auto& s) { return !s->tail || s->tail->done(now); });
  leaving_.push_back(std::move(stream));
}

void Engine::wait(std::span<const OpPtr> ops) {
  int64_t blocked = 0;
  for (const OpPtr& op : ops) {
    if (op != nullptr) blocked += Timeline::wait(op);
  }
  this_thread().blocked_ns += blocked;
}

void Engine::wait_for_room(const std::shared_ptr<Stream>& stream) {
  OpPtr oldest;
  {
    std::lock_guard lock(mutex_);
    int64_t now = now_ns();
    auto& pending = stream->pending;
    while (!pending.empty() && pending.front()->done(now)) pending.pop_front();
    if (static_cast<int64_t>(pending.size()) < config_.queue_depth) return;
    oldest = pending.front();
  }
  int64_t start = now_ns();
  wait({&oldest, 1});
  if (!observed()) return;
  notify(StallEvent{stream->context->id, stream->id, this_thread().correlation, start,
                    now_ns()});
}

void Engine::log_op(const Op& op) {
  if (!log_.enabled()) return;
  const OpSpec& spec = op.spec;
  TruthRecord record{};
  record.type = static_cast<uint32_t>(RecordType::kOp);
  record.tid = op.tid;
  record.correlation = op.correlation;
  record.start_ns = op.start_ns;
  record.end_ns = op.end_ns.load(std::memory_order_relaxed);
  record.extra = op.submit_ns;
  record.stream = op.stream;
  record.bytes = spec.bytes;
  record.handle = spec.function != nullptr ? reinterpret_cast<uint64_t>(spec.function)
                                           : spec.handle;
  record.name = spec.function != nullptr ? spec.function->name_id : 0;
  record.kind = static_cast<uint16_t>(spec.kind);
  record.sub = static_cast<uint16_t>(static_cast<uint16_t>(spec.copy) +
                                     (spec.pageable ? 16 : 0));
  record.device = op.device;
  record.aux = static_cast<uint32_t>(op.graph);
  record.parent = op.context;
  record.grid = spec.grid;
  record.block = spec.block;
  log_.append(record);
}

}  // namespace lull::sim
