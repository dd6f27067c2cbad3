// Reads memory snapshots of PyTorch: pickles that torch.cuda.memory._dump_snapshot()
// wrote, or that hold what torch.cuda.memory_snapshot() returns. Nothing of them is
// executed (pickle.h). docs/importing.md says what is made of them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/import/input.h"
#include "daemon/import/pickle.h"
#include "daemon/import/record.h"

namespace lull::imports {

enum class SnapshotAction : uint8_t {
  kAlloc,
  kFree,        // asked for; other streams may still use the block
  kSegmentAdd,  // the allocator took memory from the driver
  kSegmentRemove,
  kOutOfMemory,
  kSnapshot,  // the history was looked at before
};

// Of the history of a device.
struct SnapshotEntry {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t time_us = 0;  // 0: not told
  Pickle::Value frames;  // a list, or nothing
  uint8_t device = 0;
  SnapshotAction action = SnapshotAction::kAlloc;
};

// In use when the snapshot was taken.
struct SnapshotBlock {
  uint64_t address = 0;
  uint64_t bytes = 0;  // that were asked for
  Pickle::Value frames;
  uint8_t device = 0;
};

// One process.
struct Snapshot {
  Trace trace;  // its texts; it has no records
  Pickle pickle;
  std::vector<SnapshotEntry> entries;  // of each device in their order
  std::vector<SnapshotBlock> blocks;
  std::map<uint8_t, v1::SegmentUse> segments;  // by device

  size_t bytes() const {
    return pickle.bytes() + entries.capacity() * sizeof(SnapshotEntry) +
           blocks.capacity() * sizeof(SnapshotBlock);
  }
};

struct SnapshotLimits {
  size_t records = 5'000'000;  // entries and blocks
  size_t bytes = 352u << 20;
};

// Whether a file's first byte is that of a pickle; no trace begins so.
inline bool BeginsAsPickle(int byte) { return byte == 0x80; }

// Errors as of Pickle::Read(); INVALID_ARGUMENT also for a pickle of something else.
absl::StatusOr<Snapshot> ReadSnapshot(Input& input, const SnapshotLimits& limits = {});

}  // namespace lull::imports
