// Stacks of backward work. What PyTorch's engine does on threads of its own has no
// Python frames; it has the node that it works on, the line that called backward(), and
// the line whose operator made the node (docs/backward.md).
#pragma once

#include <cstdint>

#include "preload/abi/event.h"
#include "preload/autograd/callers.h"

namespace lull {

// Which part of a thread's Python stacks is wanted, and what stands for it if the
// thread is in a node that has no frames of its own.
enum class Frames : uint32_t { kAll = 0, kTip = 1 };

// If more calls are within calls, the stacks of the outer ones are lost on the way
// back.
inline constexpr uint32_t kMostAround = 3;

struct ThreadAutograd {
  uint64_t noted;  // nodes that it had made when we looked last
  // When that was: of another segment, or before the process slept, the nodes that came
  // since were made while nobody looked.
  uint64_t asleep_since_ns;
  uint32_t generation;  // 0: never
  uint32_t thread;      // PyTorch's number of it, + 1; 0: not asked for yet
  ThreadBackward backward;
  uint32_t is_engines;  // OwnThread
  // One of the engine's threads goes into the engine again (checkpoint): its stacks at
  // that moment, by Frames. As long as they are the same it is in there.
  abi::Ref at_engine[2];
  uint32_t within;  // calls of the engine from its own nodes that are under way
  abi::Ref around[kMostAround][2];  // at_engine of the calls around the innermost
};
enum OwnThread : uint32_t { kNotJudged = 0, kEngines = 1, kOther = 2 };

// constinit: no wrapper that asks for a constructor.
extern constinit thread_local ThreadAutograd t_autograd
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// For a thread without Python frames: a kBackward entry, or 0 if the thread is none of
// the engine's, or is between two nodes. 60 ns.
abi::Ref backward_stack(char* segment);

// The same of one whose Python frames are `stack` if all they do is call the engine,
// else `stack`.
abi::Ref backward_within(char* segment, abi::Ref stack);
inline abi::Ref backward_or(char* segment, abi::Ref stack, Frames frames) {
  const ThreadAutograd& thread = t_autograd;
  bool is_same = stack == thread.at_engine[static_cast<uint32_t>(frames)];
  return __builtin_expect(is_same, 0) ? backward_within(segment, stack) : stack;
}

bool is_backward(char* segment, abi::Ref stack);
// Its caller is all that it tells.
bool is_backward_without_node(char* segment, abi::Ref stack);

// This thread goes into the engine, and comes back or is thrown out. `frame` is that of
// the call. Nothing of a call lies on the program's stack: greenlets move theirs away
// and end their calls in any order.
void backward_begin(void* frame);
void backward_end();

// This thread has allocated a tensor, or given the GPU work, at the Python stack
// `python`; 0: that was not taken. If it is the first time since it made a node, it is
// the operator that made the node; but not where nobody looked when the node was made.
// 8 ns where it is not.
void note_forward(char* segment, abi::Ref python);

// True where note_forward() would do anything, of a thread that has allocated a tensor:
// to answer for another one PyTorch would allocate memory.
bool a_node_is_new(char* segment);
inline bool forward_is_wanted(char* segment) {
  return t_autograd.generation != 0 && a_node_is_new(segment);
}

}  // namespace lull
