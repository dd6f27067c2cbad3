// The node of the backward graph that this thread runs, and the number of the one that
// it made last: what PyTorch tells by itself, and the fields of a node.
//
// Verified against the headers of 2.1.2, 2.4.1, 2.6.0, 2.8.0, 2.12.1 and 2.15.0: a node
// is held by a std::shared_ptr up to 2.12 and counts its own owners from 2.13 on. Of
// other versions, 1.13 among them, which has no get_current_node(), nothing is asked.
#pragma once

#include <cstdint>

#include "preload/python/api.h"
#include "preload/python/torch_version.h"

namespace lull {

// Where what is wanted of a torch::autograd::Node lies.
struct NodeLayout {
  int sequence_number;
  int forward_thread;
  // Offset of the word that counts its owners: in the node, or in the block that the
  // second word of a std::shared_ptr leads to.
  int owners;
  bool counts_itself;
};

// Pure. nullptr: not verified.
const NodeLayout* node_layout(TorchVersion version);

// Finds the functions if PyTorch has been imported by now and is of a version that is
// known. With the GIL, in the main interpreter. Nothing is installed: only addresses
// are kept.
void autograd_try_install(const PythonApi* api);

// False: nothing below may be called.
bool autograd_is_known();

struct Node {
  const char* type;  // its class, as the compiler mangles types; nullptr: unknown
  uint64_t sequence_number;  // UINT64_MAX: of no operator
  uint64_t forward_thread;
};

// The node that this thread, one of the engine's own, works on; false where it is
// between two. 15 ns: PyTorch hands out a reference, and it is given back.
bool current_node(Node* node);

// PyTorch's number of the backward() that this thread works for, one of the engine's
// own: they grow from call to call. kNoTask: none, or not known. 7 ns.
inline constexpr int32_t kNoTask = -1;
int32_t graph_task();

// How many nodes this thread has made; the next one gets this number. 7 ns.
uint64_t nodes_made();

// PyTorch's number of this thread, which has made a node.
uint64_t forward_thread();

}  // namespace lull
