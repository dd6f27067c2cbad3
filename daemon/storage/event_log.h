// The events of processes, ring by ring, in compressed blocks. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/aggregate/event.h"
#include "daemon/storage/block_codec.h"
#include "daemon/storage/database.h"
#include "daemon/storage/rows.h"

namespace lull::storage {

// Events that the collector derives (aggregate::EventType from kFirstDerived on) lie in
// a ring of their own, beyond all that a relay can name. It takes no part in committed
// = stored + lost.
inline constexpr uint32_t kDerivedRing = 1 << 20;

// A block that is full, as it is stored: a tenth of what its events take in memory.
struct PackedBlock {
  uint64_t first_position = 0;
  size_t count = 0;
  uint64_t min_ns = 0, max_ns = 0;  // starts of events
  std::string data;
};
// `events`: kMaxBlockEvents.
PackedBlock PackBlock(uint64_t first_position,
                      const std::vector<aggregate::Event>& events,
                      BlockEncoder& encoder);

class EventLog {
 public:
  explicit EventLog(Database& db) : db_(db) {}

  // Calls back with every event that starts in [begin_ns, end_ns). Those of one ring
  // come in the order of their positions, in which they were committed. Among several
  // rings, the one whose next event ended first is next. So the events of a thread come
  // in the order in which they ended, also where a ring had several threads one after
  // another, or where several rings have the number of one thread.
  using Callback = absl::FunctionRef<void(const aggregate::Event&)>;
  absl::Status Read(int64_t process, uint64_t begin_ns, uint64_t end_ns,
                    Callback callback) const;
  // The same of one ring alone, and how many events of it are stored.
  absl::Status ReadRing(int64_t process, uint32_t ring, uint64_t begin_ns,
                        uint64_t end_ns, Callback callback) const;
  absl::StatusOr<uint64_t> Count(int64_t process, uint32_t ring) const;
  // About how many events of all rings Read() would call back with: as if those of a
  // block were spread evenly.
  absl::StatusOr<double> Estimate(int64_t process, uint64_t begin_ns,
                                  uint64_t end_ns) const;

  // Stores events at positions first_position, first_position + 1, ... of a ring.
  // Small runs are merged into larger ones later on.
  absl::Status Append(const ProcessRow& process, uint32_t ring, uint64_t first_position,
                      const std::vector<aggregate::Event>& events);
  absl::Status Append(const ProcessRow& process, uint32_t ring,
                      const PackedBlock& block);
  // At most `limit` blocks of a process; returns how many.
  absl::StatusOr<int64_t> DeleteSome(int64_t process, int limit);

 private:
  // `ring`: kAllRings, or one.
  absl::Status ReadRings(int64_t process, int64_t ring, uint64_t begin_ns,
                         uint64_t end_ns, Callback callback) const;
  absl::Status PutBlock(const ProcessRow& process, uint32_t ring,
                        uint64_t first_position, const aggregate::Event* events,
                        size_t count);
  absl::Status PutBlock(const ProcessRow& process, uint32_t ring,
                        const PackedBlock& block, std::string_view data);
  absl::Status MergeSmallBlocks(const ProcessRow& process, uint32_t ring);

  Database& db_;
  BlockEncoder encoder_;
  mutable BlockDecoder decoder_;
};

}  // namespace lull::storage
