#include "preload/cupti/graph_nodes.h"

namespace lull::cupti {
namespace {

constexpr uint32_t kProbes = 16;

void raise(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t seen = value.load(std::memory_order_relaxed);
  while (to > seen &&
         !value.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

void GraphNodes::begin(const GraphNodes* before) {
  all_ended_.store(false, std::memory_order_relaxed);
  for (Graph& graph : graphs_) {
    if (graph.key.load(std::memory_order_relaxed) == 0) continue;  // no memory yet
    for (auto* known : {&graph.key, &graph.launch, &graph.size, &graph.end_ns}) {
      known->store(0, std::memory_order_relaxed);
    }
    graph.stream.store(0, std::memory_order_relaxed);
  }
  if (before == nullptr) return;
  for (const Graph& graph : before->graphs_) {
    const uint64_t size = graph.size.load(std::memory_order_relaxed);
    // Not launched any more: others may need its place.
    if (size == 0 || graph.launch.load(std::memory_order_relaxed) == 0) continue;
    const uint64_t key = graph.key.load(std::memory_order_relaxed);
    Graph* slot = slot_of(static_cast<uint32_t>(key - 1));
    if (slot != nullptr) slot->size.store(size, std::memory_order_relaxed);
  }
}

void GraphNodes::saw(uint32_t graph, uint32_t id, uint64_t end_ns, abi::Ref stream) {
  Graph* slot = slot_of(graph);
  if (slot == nullptr) return;
  uint64_t known = slot->launch.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    // Ids begin anew after 2^32.
    const auto ahead = static_cast<int32_t>(id - id_of(known));
    if (known != 0 && ahead < 0) return;
    next = known != 0 && ahead == 0 ? known + 1 : uint64_t{id} << 32 | 1;
  } while (!slot->launch.compare_exchange_weak(known, next, std::memory_order_relaxed));
  if (known != 0 && id_of(known) != id) raise(slot->size, nodes_of(known));
  raise(slot->end_ns, end_ns);
  if (stream != 0) slot->stream.store(stream, std::memory_order_relaxed);
}

// Null: there are too many.
GraphNodes::Graph* GraphNodes::slot_of(uint32_t graph) {
  const uint64_t key = uint64_t{graph} + 1;
  for (uint32_t i = 0; i < kProbes; ++i) {
    Graph& slot = graphs_[(graph + i) % kGraphs];
    uint64_t known = slot.key.load(std::memory_order_relaxed);
    if (known == 0 &&
        slot.key.compare_exchange_strong(known, key, std::memory_order_relaxed)) {
      known = key;
    }
    if (known == key) return &slot;
  }
  return nullptr;
}

}  // namespace lull::cupti
