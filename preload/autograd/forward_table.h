// Which line made a node of the backward graph: from the node's number to a stack.
//
// PyTorch numbers the nodes that a thread makes, from 0 on, and a node knows its number
// and its thread (torch/csrc/autograd/function.h). The first allocation or launch after
// a node was made is of the operator that made it; its stack is kept here until a later
// node needs the place. One word each, so that what is found is right or not there:
//
//   stack, 20 bits | generation, 8 | thread, 10 | the number without its lowest 14, 26
//
// Any number of threads, no locks. 128 KiB, as far as they are touched.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/abi/event.h"

namespace lull {

class ForwardTable {
 public:
  static constexpr uint32_t kPlaces = 1 << 14;

  // thread: PyTorch's number of it. What is too large for a word is left out.
  void put(uint32_t generation, uint64_t thread, uint64_t number, abi::Ref stack);

  // 0: not known, or no longer.
  abi::Ref find(uint32_t generation, uint64_t thread, uint64_t number) const;

 private:
  static constexpr uint32_t kThreadBits = 10, kHighBits = 26, kGenerationBits = 8;

  static bool fits(uint64_t thread, uint64_t number);
  // All but the stack.
  static uint64_t key_of(uint32_t generation, uint64_t thread, uint64_t number);
  // Threads that have made as many nodes as each other do not meet.
  static uint32_t place_of(uint64_t thread, uint64_t number) {
    return static_cast<uint32_t>(number + thread * 0x9e3) % kPlaces;
  }

  std::atomic<uint64_t> words_[kPlaces];
};

}  // namespace lull
