// Stacks of one process as a tree: a node is a frame and what it was called from, so a
// stack is one number, and pushing a frame is one look-up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/import/string_table.h"
#include "ingest.pb.h"

namespace lull::imports {

class StackTable {
 public:
  // `native`: names of operators rather than places in Python.
  explicit StackTable(bool native) : native_(native) { nodes_.emplace_back(); }

  struct Place {
    uint32_t function = 0;  // in the StringTable
    uint32_t file = 0;
    int32_t line = 0;
    friend bool operator==(const Place&, const Place&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Place& p) {
      return H::combine(std::move(h), p.function, p.file, p.line);
    }
  };

  // `place` called from where `caller` is; 0 is the empty stack.
  uint32_t Push(uint32_t caller, const Place& place);
  // All of `stack` called from where `caller` is.
  uint32_t Append(uint32_t caller, uint32_t stack);
  // "file(12): step;...", innermost first: a whole stack.
  uint32_t OfCallStack(std::string_view text, StringTable& strings);

  // Number of the stack in StackDef.ref, of this table alone.
  uint32_t Ref(uint32_t node) const { return node == 0 ? 0 : 2 * node + native_; }
  // Its definition without the frames, and the places that these are at, innermost
  // first.
  lull::v1::StackDef Define(uint32_t node, std::vector<uint32_t>* places) const;
  lull::v1::Frame FrameAt(uint32_t place, const StringTable& strings) const;
  size_t size() const { return nodes_.size(); }
  size_t places() const { return places_.size(); }

 private:
  struct Node {
    uint32_t caller = 0;
    uint32_t place = 0;
  };
  uint32_t PushPlace(uint32_t caller, uint32_t place);

  const bool native_;
  std::vector<Node> nodes_;
  std::vector<Place> places_;
  absl::flat_hash_map<Place, uint32_t> place_ids_;
  absl::flat_hash_map<uint64_t, uint32_t> known_;  // caller and place -> node
};

}  // namespace lull::imports
