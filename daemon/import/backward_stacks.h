// Stacks of PyTorch's backward pass: its threads run no Python, but their operators say
// which operator of the forward pass they belong to (by its sequence number), and some
// other thread is in run_backward meanwhile. Laid out as those of live jobs
// (daemon/base/backward_frames.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "daemon/import/record.h"
#include "daemon/import/stack_table.h"

namespace lull::imports {

// The sequence numbers that an operator has; those of the forward pass come first.
inline bool IsForward(const Record& op) { return op.bytes != 0 && op.extra == 0; }
// "autograd::engine::evaluate_function: AddmmBackward0", or that node itself.
bool IsBackward(const Record& op, std::string_view name);

class BackwardStacks {
 public:
  BackwardStacks(StackTable& python, StringTable& strings)
      : python_(python), strings_(strings) {}

  // An operator of the forward pass, and where its thread was. The last one of a number
  // counts: it made the node.
  void AddForward(const Record& op, uint32_t stack) { forward_[op.bytes] = stack; }
  // A thread waits for backward(), called from `stack`, in [start, end).
  void AddCaller(uint32_t stack, uint64_t start_ns, uint64_t end_ns);

  // The stack of an operator of the backward pass; a node of `python`.
  uint32_t Of(const Record& op);

 private:
  uint32_t NodeOf(uint32_t name);

  StackTable& python_;
  StringTable& strings_;
  absl::flat_hash_map<uint64_t, uint32_t> forward_;  // sequence number + 1 -> stack
  uint32_t caller_ = 0;
  uint64_t caller_from_ns_ = 0, caller_to_ns_ = 0;
  absl::flat_hash_map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> known_;
  absl::flat_hash_map<uint32_t, uint32_t> nodes_;  // by the operator's name
};

}  // namespace lull::imports
