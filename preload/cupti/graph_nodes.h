// Whether a launch of a CUDA graph has ended: CUPTI tells of its nodes, one by one, and
// not how many there are.
//
// A graph does not run beside itself, so all that a launch has is known once the next
// one of the same graph has begun: the most that any launch had is what a launch has.
// Or something ran that was launched later on the stream of a node. Where neither shows
// that the last launch has ended, nobody knows what the device did after its last known
// node.
//
// Any thread, no locks; begin() and the questions under the tracer's.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/abi/arena.h"

namespace lull::cupti {

class GraphNodes {
 public:
  // Graphs beyond these are taken to have ended with their first node.
  static constexpr uint32_t kGraphs = 256;

  // A window. Sizes are known of graphs that were launched in the one before; null: of
  // none.
  void begin(const GraphNodes* before);

  // A node of the launch `id` has ended. `stream`: 0 if it is not known.
  void saw(uint32_t graph, uint32_t id, uint64_t end_ns, abi::Ref stream);

  // The program has waited for the device, and nothing is launched any more.
  void all_ended() { all_ended_.store(true, std::memory_order_relaxed); }

  // Since when the device may have been at a launch of which some nodes have ended;
  // UINT64_MAX: at none. is_behind(stream, id): something has run on it that was
  // launched after `id`.
  template <typename IsBehind>
  uint64_t unsure_since(IsBehind is_behind) const {
    uint64_t since = UINT64_MAX;
    if (all_ended_.load(std::memory_order_relaxed)) return since;
    for (const Graph& graph : graphs_) {
      const uint64_t launch = graph.launch.load(std::memory_order_relaxed);
      if (launch == 0 || is_whole(graph, launch)) continue;
      const abi::Ref stream = graph.stream.load(std::memory_order_relaxed);
      if (stream != 0 && is_behind(stream, id_of(launch))) continue;
      const uint64_t end = graph.end_ns.load(std::memory_order_relaxed);
      if (end < since) since = end;
    }
    return since;
  }

 private:
  struct Graph {
    std::atomic<uint64_t> key;     // the graph + 1; 0: free
    std::atomic<uint64_t> launch;  // the newest one: id << 32 | nodes; 0: none
    std::atomic<uint64_t> size;    // most nodes of an earlier one; 0: there was none
    std::atomic<uint64_t> end_ns;  // of the last node
    std::atomic<abi::Ref> stream;  // of some node
  };

  static uint32_t id_of(uint64_t launch) { return static_cast<uint32_t>(launch >> 32); }
  static uint32_t nodes_of(uint64_t launch) { return static_cast<uint32_t>(launch); }
  static bool is_whole(const Graph& graph, uint64_t launch) {
    const uint64_t size = graph.size.load(std::memory_order_relaxed);
    return size != 0 && nodes_of(launch) >= size;
  }
  Graph* slot_of(uint32_t graph);

  std::atomic<bool> all_ended_{false};
  Graph graphs_[kGraphs] = {};
};

}  // namespace lull::cupti
