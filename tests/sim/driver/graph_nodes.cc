// Graphs that are built node by node, as XLA builds its own. A graph within a graph
// becomes nodes of the outer one, with an empty node behind them.
#include <algorithm>
#include <unordered_map>

#include "tests/sim/driver/copy.h"
#include "tests/sim/driver/device.h"

using namespace lull::sim;

namespace {

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelParams {
  void* function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  void** parameters;
  void** extra;
  void* kernel;
  void* context;
};
static_assert(sizeof(KernelParams) == 72);

// CUDA_MEMSET_NODE_PARAMS.
struct SetParams {
  DevicePtr dst;
  size_t pitch;
  unsigned value;
  unsigned element;
  size_t width, height;
};
static_assert(sizeof(SetParams) == 40);

// CUgraphNodeParams: of a node of any type (CUgraphNodeType).
struct NodeParams {
  int type;
  int reserved[3];
  union {
    KernelParams kernel;
    struct {
      int flags, reserved;
      void* context;
      Copy3d copy;
    } memcpy;
    SetParams memset;
    void* graph;
    long long bytes[29];
  };
  long long reserved2;
};
static_assert(sizeof(NodeParams) == 256);
constexpr int kKernelNode = 0, kMemcpyNode = 1, kMemsetNode = 2, kGraphNode = 4;
constexpr int kEmptyNode = 5;

int describe(const KernelParams& params, OpSpec* spec) {
  const void* function = params.function != nullptr ? params.function : params.kernel;
  const unsigned* g = params.grid;
  const unsigned* b = params.block;
  uint64_t threads = uint64_t{b[0]} * b[1] * b[2];
  uint64_t blocks = uint64_t{g[0]} * g[1] * g[2];
  if (function == nullptr) return kInvalidHandle;
  if (threads == 0 || threads > kThreadsPerBlock || blocks == 0) return kInvalidValue;
  spec->kind = OpKind::kKernel;
  spec->function = static_cast<const Function*>(function);
  spec->grid = static_cast<uint32_t>(blocks);
  spec->block = static_cast<uint32_t>(threads);
  std::copy_n(params.grid, 3, spec->shape);
  std::copy_n(params.block, 3, spec->shape + 3);
  spec->shared = params.shared;
  return kOk;
}

SetShape shape_of(const SetParams& params) {
  SetShape shape;
  shape.dst = params.dst;
  shape.value = params.value;
  shape.element = params.element;
  shape.width = params.width;
  shape.height = params.height;
  shape.pitch = params.pitch;
  return shape;
}

int describe(Engine* engine, const NodeParams& params, OpSpec* spec) {
  switch (params.type) {
    case kKernelNode:
      return describe(params.kernel, spec);
    case kMemcpyNode:
      return ::lull::sim::describe(engine, cuboid(params.memcpy.copy), spec);
    case kMemsetNode:
      return ::lull::sim::describe(engine, shape_of(params.memset), spec);
    case kEmptyNode:
      return kOk;
    default:
      return kNotSupported;
  }
}

GraphNode* append(Graph* graph, OpSpec spec, std::vector<GraphNode*> after) {
  graph->nodes.push_back(std::make_unique<GraphNode>(
      GraphNode{graph, std::move(spec), std::move(after), 0}));
  return graph->nodes.back().get();
}

std::vector<GraphNode*> nodes_of(void* const* nodes, size_t count) {
  std::vector<GraphNode*> all(count);
  std::transform(nodes, nodes + count, all.begin(),
                 [](void* node) { return static_cast<GraphNode*>(node); });
  return all;
}

int add(Engine* engine, void** out, void* handle, void* const* after, size_t count,
        const NodeParams& params) {
  if (out == nullptr || (after == nullptr && count != 0)) return kInvalidValue;
  Lock lock(engine->mutex());
  auto graph = engine->graphs.find(handle);
  if (graph == nullptr) return kInvalidHandle;
  OpSpec spec;
  if (int error = describe(engine, params, &spec)) return error;
  *out = append(graph.get(), std::move(spec), nodes_of(after, count));
  return kOk;
}

// The place of a node in its graph, which is that of its twin in an executable one.
size_t index_of(const GraphNode* node) {
  const auto& nodes = node->graph->nodes;
  auto at = std::find_if(nodes.begin(), nodes.end(),
                         [&](const auto& other) { return other.get() == node; });
  return static_cast<size_t>(at - nodes.begin());
}

// With `describe_node(OpSpec*)` for what the node is to be.
template <typename Describe>
int change(Engine* engine, void* handle, void* opaque, Describe describe_node) {
  if (opaque == nullptr) return kInvalidValue;
  Lock lock(engine->mutex());
  auto exec = engine->graph_execs.find(handle);
  if (exec == nullptr) return kInvalidHandle;
  size_t index = index_of(static_cast<GraphNode*>(opaque));
  if (index >= exec->graph.nodes.size()) return kInvalidValue;
  OpSpec spec;
  if (int error = describe_node(&spec)) return error;
  exec->graph.nodes[index]->spec = std::move(spec);
  return kOk;
}

int add_graph(Engine* engine, void** out, void* handle, void* const* after,
              size_t count, void* child_handle) {
  if (out == nullptr || (after == nullptr && count != 0)) return kInvalidValue;
  Lock lock(engine->mutex());
  auto graph = engine->graphs.find(handle);
  auto child = engine->graphs.find(child_handle);
  if (graph == nullptr || child == nullptr || graph == child) return kInvalidHandle;
  const std::vector<GraphNode*> roots = nodes_of(after, count);
  std::unordered_map<const GraphNode*, GraphNode*> twin;
  std::vector<GraphNode*> all = roots;
  for (const auto& node : child->nodes) {
    std::vector<GraphNode*> before;
    for (const GraphNode* other : node->after) before.push_back(twin[other]);
    if (before.empty()) before = roots;
    GraphNode* copy = append(graph.get(), node->spec, std::move(before));
    copy->children = node->children;
    twin[node.get()] = copy;
    all.push_back(copy);
  }
  GraphNode* end = append(graph.get(), OpSpec{}, std::move(all));
  end->children = child->nodes.size();
  *out = end;
  return kOk;
}

int change_graph(Engine* engine, void* handle, void* opaque, void* child_handle) {
  if (opaque == nullptr) return kInvalidValue;
  Lock lock(engine->mutex());
  auto exec = engine->graph_execs.find(handle);
  auto child = engine->graphs.find(child_handle);
  if (exec == nullptr || child == nullptr) return kInvalidHandle;
  const auto* end = static_cast<GraphNode*>(opaque);
  size_t index = index_of(end);
  if (end->children != child->nodes.size() || index >= exec->graph.nodes.size()) {
    return kInvalidValue;
  }
  for (size_t i = 0; i < end->children; ++i) {
    exec->graph.nodes[index - end->children + i]->spec = child->nodes[i]->spec;
  }
  return kOk;
}

}  // namespace

SIM_EXPORT int cuGraphAddNode_v2(void** node, void* graph, void* const* after,
                                 const void*, size_t count, NodeParams* params) {
  SIM_CALL();
  if (params == nullptr) return call.done(kInvalidValue);
  if (params->type == kGraphNode) {
    return call.done(add_graph(engine, node, graph, after, count, params->graph));
  }
  return call.done(add(engine, node, graph, after, count, *params));
}

SIM_EXPORT int cuGraphExecNodeSetParams(void* exec, void* node, NodeParams* params) {
  SIM_CALL();
  if (params == nullptr) return call.done(kInvalidValue);
  if (params->type == kGraphNode) {
    return call.done(change_graph(engine, exec, node, params->graph));
  }
  return call.done(change(engine, exec, node, [&](OpSpec* spec) {
    return describe(engine, *params, spec);
  }));
}

SIM_EXPORT int cuGraphAddChildGraphNode(void** node, void* graph, void* const* after,
                                        size_t count, void* child) {
  SIM_CALL();
  return call.done(add_graph(engine, node, graph, after, count, child));
}

// Those that wait for no other.
SIM_EXPORT int cuGraphGetRootNodes(void* graph, void** nodes, size_t* count) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto found = engine->graphs.find(graph);
  if (found == nullptr || count == nullptr) return call.done(kInvalidValue);
  size_t roots = 0;
  for (const auto& node : found->nodes) {
    if (!node->after.empty()) continue;
    if (nodes != nullptr && roots < *count) nodes[roots] = node.get();
    ++roots;
  }
  *count = roots;
  return call.done(kOk);
}

SIM_EXPORT int cuGraphExecKernelNodeSetParams_v2(void* exec, void* node,
                                                 const KernelParams* params) {
  SIM_CALL();
  return call.done(change(engine, exec, node,
                          [&](OpSpec* spec) { return describe(*params, spec); }));
}

SIM_EXPORT int cuGraphExecMemcpyNodeSetParams(void* exec, void* node,
                                              const Copy3d* params, void*) {
  SIM_CALL();
  return call.done(change(engine, exec, node, [&](OpSpec* spec) {
    return ::lull::sim::describe(engine, cuboid(*params), spec);
  }));
}

SIM_EXPORT int cuGraphExecMemsetNodeSetParams(void* exec, void* node,
                                              const SetParams* params, void*) {
  SIM_CALL();
  return call.done(change(engine, exec, node, [&](OpSpec* spec) {
    return ::lull::sim::describe(engine, shape_of(*params), spec);
  }));
}

SIM_EXPORT int cuGraphExecChildGraphNodeSetParams(void* exec, void* node, void* child) {
  SIM_CALL();
  return call.done(change_graph(engine, exec, node, child));
}
