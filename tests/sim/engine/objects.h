// The objects behind the handles of the driver: contexts, streams, events,
// modules, functions, graphs. Plain data; the engine (engine.h) owns them and
// gives them meaning. All fields are guarded by the engine's lock, unless they
// never change after creation.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/sim/engine/op.h"

namespace lull::sim {

struct Stream;
struct Graph;

struct Context {
  uint64_t id = 0;
  uint32_t device = 0;
  bool primary = false;
  unsigned flags = 0;
  std::shared_ptr<Stream> legacy;                                    // the NULL stream
  std::unordered_map<uint32_t, std::shared_ptr<Stream>> per_thread;  // by thread id
  std::vector<std::weak_ptr<Stream>> streams;                        // all but `legacy`
};

struct GraphNode {
  Graph* graph;
  OpSpec spec;
  std::vector<GraphNode*> after;  // nodes that must end before
  size_t children = 0;            // so many nodes before it are those of its graph
};

struct Graph {
  uint64_t id = 0;
  std::vector<std::unique_ptr<GraphNode>> nodes;  // in an order that respects `after`
};

struct GraphExec {
  uint64_t id = 0;
  uint64_t flags = 0;
  Graph graph;
};

// Which calls a running capture forbids to whom (cudaStreamCaptureMode).
enum class CaptureMode { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

// One capture: begun on one stream, joined by others through events.
struct Capture {
  uint64_t id = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  uint32_t tid = 0;
  Stream* origin = nullptr;
  bool active = true;  // until the origin ends it
  bool invalid = false;
  std::shared_ptr<Graph> graph;
};

struct Stream {
  uint64_t id = 0;
  Context* context = nullptr;
  bool legacy = false;   // is the NULL stream
  bool blocking = true;  // orders itself against the NULL stream
  int priority = 0;
  OpPtr tail;                 // last operation
  std::deque<OpPtr> pending;  // launches that may not have ended, oldest first
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> capture_tail;  // next node comes after these
};

struct Event {
  uint64_t id = 0;
  bool timing = true;
  OpPtr recorded;                    // null: never recorded
  std::shared_ptr<Capture> capture;  // recorded in a capture, after these nodes
  std::vector<GraphNode*> capture_nodes;
};

struct Module {
  uint64_t id = 0;
  std::unordered_map<std::string, std::unique_ptr<Function>> functions;
};

// What the driver's linker was given.
struct Linking {
  std::string image;
};

struct Function {
  std::string name;
  uint32_t name_id = 0;  // in the ground-truth log
  Module* module = nullptr;
  int max_dynamic_shared = 48 << 10;
};

}  // namespace lull::sim
