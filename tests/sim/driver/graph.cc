// Stream capture and executable graphs.
#include <algorithm>
#include <unordered_map>

#include "tests/sim/driver/api.h"

using namespace lull::sim;

namespace {

// A copy whose nodes refer to each other, not to the original's.
void clone(const Graph& from, Graph* to) {
  std::unordered_map<const GraphNode*, GraphNode*> twin;
  for (const auto& node : from.nodes) {
    auto copy =
        std::make_unique<GraphNode>(GraphNode{to, node->spec, {}, node->children});
    for (const GraphNode* before : node->after) copy->after.push_back(twin[before]);
    twin[node.get()] = copy.get();
    to->nodes.push_back(std::move(copy));
  }
}

int instantiate(Engine* engine, void** out, void* handle, unsigned long long flags) {
  if (out == nullptr) return kInvalidValue;
  Lock lock(engine->mutex());
  auto graph = engine->graphs.find(handle);
  if (graph == nullptr) return kInvalidHandle;
  auto exec = std::make_shared<GraphExec>();
  exec->id = engine->new_id();
  exec->flags = flags;
  clone(*graph, &exec->graph);
  *out = engine->graph_execs.add(std::move(exec));
  return kOk;
}

int begin(Engine* engine, void* handle, int mode, DefaultStream null) {
  Lock lock(engine->mutex());
  auto stream = engine->stream(handle, null);
  if (stream == nullptr || mode < 0 || mode > 2) return kInvalidValue;
  // The NULL stream orders others, so it cannot be captured.
  if (stream->legacy) return kCaptureUnsupported;
  if (stream->capture != nullptr) return 1;
  auto graph = std::make_shared<Graph>();
  graph->id = engine->new_id();
  engine->begin_capture(stream.get(), static_cast<CaptureMode>(mode), std::move(graph));
  return kOk;
}

// What is captured becomes nodes of a graph that is there, after `after`.
int begin_into(Engine* engine, void* handle, void* graph_handle, void* const* after,
               size_t count, int mode, DefaultStream null) {
  Lock lock(engine->mutex());
  auto stream = engine->stream(handle, null);
  auto graph = engine->graphs.find(graph_handle);
  if (stream == nullptr || mode < 0 || mode > 2) return kInvalidValue;
  if (graph == nullptr || (after == nullptr && count != 0)) return kInvalidValue;
  if (stream->legacy) return kCaptureUnsupported;
  if (stream->capture != nullptr) return 1;
  engine->begin_capture(stream.get(), static_cast<CaptureMode>(mode), std::move(graph));
  for (size_t i = 0; i < count; ++i) {
    stream->capture_tail.push_back(static_cast<GraphNode*>(after[i]));
  }
  return kOk;
}

int end(Engine* engine, void* handle, void** out, DefaultStream null) {
  Lock lock(engine->mutex());
  auto stream = engine->stream(handle, null);
  if (stream == nullptr) return kInvalidHandle;
  std::shared_ptr<Graph> graph;
  if (int error = engine->end_capture(stream.get(), &graph)) {
    if (out != nullptr) *out = nullptr;
    return error;
  }
  *out = engine->graphs.add(std::move(graph));
  return kOk;
}

struct CaptureInfo {
  int status = 0;  // 0 none, 1 active, 2 invalidated
  uint64_t id = 0;
  Stream* stream = nullptr;
};

int capture_info(Engine* engine, void* handle, DefaultStream null, CaptureInfo* info) {
  auto stream = engine->stream(handle, null);
  if (stream == nullptr) return kInvalidHandle;
  info->stream = stream.get();
  if (stream->capture == nullptr) return kOk;
  info->status = stream->capture->invalid ? 2 : 1;
  info->id = stream->capture->id;
  return kOk;
}

int full_info(Engine* engine, void* handle, DefaultStream null, int* status,
              unsigned long long* id, void** graph, void*** nodes, size_t* count) {
  Lock lock(engine->mutex());
  CaptureInfo info;
  if (int error = capture_info(engine, handle, null, &info)) return error;
  *status = info.status;
  if (info.status != 1) return kOk;
  if (id != nullptr) *id = info.id;
  // The handle is good until the capture ends, which hands it to the program.
  if (graph != nullptr) *graph = info.stream->capture->graph.get();
  auto& tail = info.stream->capture_tail;
  if (nodes != nullptr) *nodes = reinterpret_cast<void**>(tail.data());
  if (count != nullptr) *count = tail.size();
  return kOk;
}

int update_dependencies(Engine* engine, void* handle, DefaultStream null, void** nodes,
                        size_t count, unsigned flags) {
  Lock lock(engine->mutex());
  auto stream = engine->stream(handle, null);
  if (stream == nullptr || stream->capture == nullptr) return kInvalidValue;
  if (flags == 1) stream->capture_tail.clear();  // set, not add
  for (size_t i = 0; i < count; ++i) {
    stream->capture_tail.push_back(static_cast<GraphNode*>(nodes[i]));
  }
  return kOk;
}

// CUgraphNodeType.
int node_type(OpKind kind) {
  switch (kind) {
    case OpKind::kKernel:
      return 0;
    case OpKind::kCopy:
      return 1;
    case OpKind::kMemset:
      return 2;
    case OpKind::kHostFunction:
      return 3;
    case OpKind::kEventWait:
      return 6;
    case OpKind::kEventRecord:
      return 7;
    case OpKind::kMarker:
      return 5;  // empty
  }
  return 5;
}

int launch(Engine* engine, ApiCall* call, void* handle, void* stream_handle,
           DefaultStream null) {
  std::shared_ptr<GraphExec> exec;
  std::shared_ptr<Stream> stream;
  int64_t cost;
  {
    Lock lock(engine->mutex());
    exec = engine->graph_execs.find(handle);
    stream = engine->stream(stream_handle, null);
    cost = engine->config().graph_launch_ns;
  }
  if (exec == nullptr || stream == nullptr) return kInvalidHandle;
  call->compute(cost);
  Lock lock(engine->mutex());
  return engine->launch_graph(stream, exec.get());
}

}  // namespace

SIM_STREAM_API(cuStreamBeginCapture_v2, _ptsz, (void* stream, int mode),
               return call.done(begin(engine, stream, mode, kNull));)
SIM_STREAM_API(cuStreamBeginCaptureToGraph, _ptsz,
               (void* stream, void* graph, void* const* after, const void*,
                size_t count, int mode),
               return call.done(begin_into(engine, stream, graph, after, count, mode,
                                           kNull));)
SIM_STREAM_API(cuStreamEndCapture, _ptsz, (void* stream, void** graph),
               return call.done(end(engine, stream, graph, kNull));)

SIM_STREAM_API(cuStreamIsCapturing, _ptsz, (void* stream, int* status), {
  Lock lock(engine->mutex());
  CaptureInfo info;
  int error = capture_info(engine, stream, kNull, &info);
  *status = info.status;
  return call.done(error);
})

SIM_STREAM_API(cuStreamGetCaptureInfo_v2, _ptsz,
               (void* stream, int* status, unsigned long long* id, void** graph,
                void*** nodes, size_t* count),
               return call.done(full_info(engine, stream, kNull, status, id, graph,
                                          nodes, count));)
SIM_STREAM_API(cuStreamGetCaptureInfo_v3, _ptsz,
               (void* stream, int* status, unsigned long long* id, void** graph,
                void*** nodes, void** edges, size_t* count),
               {
                 if (edges != nullptr) *edges = nullptr;
                 return call.done(
                     full_info(engine, stream, kNull, status, id, graph, nodes, count));
               })
SIM_STREAM_API(cuStreamUpdateCaptureDependencies, _ptsz,
               (void* stream, void** nodes, size_t count, unsigned flags),
               return call.done(update_dependencies(engine, stream, kNull, nodes, count,
                                                    flags));)
SIM_STREAM_API(cuStreamUpdateCaptureDependencies_v2, _ptsz,
               (void* stream, void** nodes, const void*, size_t count, unsigned flags),
               return call.done(update_dependencies(engine, stream, kNull, nodes, count,
                                                    flags));)

SIM_EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  SIM_CALL();
  if (mode == nullptr || *mode < 0 || *mode > 2) return call.done(kInvalidValue);
  int before = static_cast<int>(this_thread().capture_mode);
  this_thread().capture_mode = static_cast<CaptureMode>(*mode);
  *mode = before;
  return call.done(kOk);
}

SIM_EXPORT int cuGraphCreate(void** graph, unsigned) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto made = std::make_shared<Graph>();
  made->id = engine->new_id();
  *graph = engine->graphs.add(std::move(made));
  return call.done(kOk);
}
SIM_EXPORT int cuGraphDestroy(void* graph) {
  SIM_CALL();
  Lock lock(engine->mutex());
  return call.done(engine->graphs.remove(graph) ? kOk : kInvalidHandle);
}
SIM_EXPORT int cuGraphGetNodes(void* graph, void** nodes, size_t* count) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto found = engine->graphs.find(graph);
  if (found == nullptr || count == nullptr) return call.done(kInvalidValue);
  if (nodes != nullptr) {
    size_t room = std::min(*count, found->nodes.size());
    for (size_t i = 0; i < room; ++i) nodes[i] = found->nodes[i].get();
  }
  *count = found->nodes.size();
  return call.done(kOk);
}
SIM_EXPORT int cuGraphNodeGetType(void* node, int* type) {
  SIM_CALL();
  if (node == nullptr) return call.done(kInvalidValue);
  *type = node_type(static_cast<GraphNode*>(node)->spec.kind);
  return call.done(kOk);
}

SIM_EXPORT int cuGraphInstantiateWithFlags(void** exec, void* graph,
                                           unsigned long long flags) {
  SIM_CALL();
  return call.done(instantiate(engine, exec, graph, flags));
}
SIM_EXPORT int cuGraphInstantiateWithParams(void** exec, void* graph, void*) {
  SIM_CALL();
  return call.done(instantiate(engine, exec, graph, 0));
}
SIM_EXPORT int cuGraphExecDestroy(void* exec) {
  SIM_CALL();
  Lock lock(engine->mutex());
  return call.done(engine->graph_execs.remove(exec) ? kOk : kInvalidHandle);
}
SIM_EXPORT int cuGraphExecGetFlags(void* exec, unsigned long long* flags) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto found = engine->graph_execs.find(exec);
  if (found == nullptr) return call.done(kInvalidHandle);
  *flags = found->flags;
  return call.done(kOk);
}
SIM_EXPORT int cuGraphExecUpdate_v2(void* exec, void* graph, void*) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto target = engine->graph_execs.find(exec);
  auto source = engine->graphs.find(graph);
  if (target == nullptr || source == nullptr) return call.done(kInvalidHandle);
  if (target->graph.nodes.size() != source->nodes.size()) return call.done(910);
  target->graph.nodes.clear();
  clone(*source, &target->graph);
  return call.done(kOk);
}

SIM_STREAM_API(cuGraphLaunch, _ptsz, (void* exec, void* stream),
               return call.done(launch(engine, &call, exec, stream, kNull));)
SIM_STREAM_API(cuGraphUpload, _ptsz, (void* exec, void*), {
  Lock lock(engine->mutex());
  (void)kNull;
  return call.done(engine->graph_execs.find(exec) ? kOk : kInvalidHandle);
})
