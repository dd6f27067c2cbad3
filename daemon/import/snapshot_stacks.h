// Stacks of a memory snapshot: the same lists of the same frames, many times.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "daemon/import/event_writer.h"
#include "daemon/import/snapshot_reader.h"

namespace lull::imports {

class SnapshotStacks {
 public:
  // It must outlive this.
  explicit SnapshotStacks(const Snapshot& snapshot) : snapshot_(snapshot) {}

  // Nodes of the writer's tables.
  struct Pair {
    uint32_t python = 0, native = 0;
  };
  // Of a list of frames, innermost first.
  Pair Of(Pickle::Value frames, EventWriter& writer);

 private:
  void Push(Pickle::Value frame, EventWriter& writer, Pair* stacks);
  StackTable::Place PlaceOf(Pickle::Value frame);

  const Snapshot& snapshot_;
  absl::flat_hash_map<uint32_t, Pair> known_;  // of lists
  absl::flat_hash_map<uint32_t, StackTable::Place> places_;
};

}  // namespace lull::imports
