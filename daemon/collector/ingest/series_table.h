// The series of one process: finds the small integer for what an event names.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "daemon/aggregate/series.h"
#include "daemon/base/check.h"
#include "daemon/collector/ingest/cell_cache.h"
#include "daemon/collector/ingest/job_tables.h"
#include "daemon/storage/store.h"

namespace lull::collector {

// What all feeds are about.
using aggregate::Event;
using aggregate::EventType;
using aggregate::Series;

// The parts of an event that decide on its series, in the numbers of the process.
struct EventIdentity {
  EventType type = EventType::kNone;
  uint8_t variant = 0;
  bool from_python = false;
  uint32_t api = 0;
  uint32_t python_ref = 0;  // of a GPU kernel: the kernel
  uint32_t native_ref = 0;  // of operations and stream waits: the GPU stream
  uint32_t shape = 0;       // aggregate::ShapeOf
  friend bool operator==(const EventIdentity&, const EventIdentity&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const EventIdentity& e) {
    return H::combine(std::move(h),
                      uint64_t{e.api} << 32 | uint64_t{e.variant} << 16 |
                          uint64_t{e.from_python} << 8 | static_cast<uint64_t>(e.type),
                      uint64_t{e.python_ref} << 32 | e.native_ref, e.shape);
  }
};

// All that tells one series from another. A process may have a million: no strings.
struct SeriesContent {
  std::array<uint32_t, 13> parts;
  friend bool operator==(const SeriesContent&, const SeriesContent&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SeriesContent& content) {
    return H::combine_contiguous(std::move(h), content.parts.data(),
                                 content.parts.size());
  }
};

// Not thread-safe. What is new is held until Flush.
class SeriesTable {
 public:
  // New series beyond `most_ids` are series 0: no cell could name them. Tests ask for
  // less.
  explicit SeriesTable(JobTables& tables,
                       uint32_t most_ids = 1 << CellChanges::kSeriesBits)
      : tables_(&tables), most_ids_(most_ids), all_(1) {
    LULL_CHECK(most_ids <= 1 << CellChanges::kSeriesBits,
               "a process may have more series than a cell can name");
  }

  absl::Status Load(storage::StoreReader& reader, int64_t process);

  // Says what a reference of the process means: the id of a stack, kernel or stream.
  void Define(storage::RefKind kind, uint32_t ref, uint32_t id);

  // The id of the series; a hash look-up for one that was seen before. A reference
  // that nothing has defined (the batch with its definition was lost) is no stack.
  uint32_t Find(const EventIdentity& identity) {
    auto it = by_identity_.find(identity);
    return it != by_identity_.end() ? it->second : Add(identity);
  }

  // The id of a series that the collector makes up itself.
  uint32_t Intern(const Series& series);

  const Series& operator[](uint32_t id) const { return all_[id]; }
  // JobTables::CallerOf its Python stack.
  uint32_t CallerOf(uint32_t id) { return tables_->CallerOf(all_[id].python_stack); }
  // Whether it is a launch of a CUDA graph, by the name of its call.
  bool LaunchesGraph(uint32_t id) const;
  bool full() const { return all_.size() >= kMaxSeries; }

  absl::Status Flush(storage::StoreWriter& writer, int64_t process);

 private:
  // Beyond this many series, new ones do without their stacks: a process with a
  // million different stacks is broken or hostile.
  static constexpr size_t kMaxSeries = 1 << 20;

  uint32_t Add(const EventIdentity& identity);
  uint32_t Group(EventType type, const Series& allocation);
  uint32_t Meaning(storage::RefKind kind, uint32_t ref);

  JobTables* tables_;
  const uint32_t most_ids_;
  std::vector<Series> all_;  // by id; 0 is none
  absl::flat_hash_map<EventIdentity, uint32_t> by_identity_;
  absl::flat_hash_map<SeriesContent, uint32_t> by_content_;
  absl::flat_hash_map<uint64_t, uint32_t> refs_;  // kind and ref -> id
  absl::flat_hash_set<uint64_t> undefined_;       // named before they were defined
  std::vector<storage::RefRow> new_refs_;
  size_t flushed_ = 1;  // all_[flushed_...] is not in the store yet
};

}  // namespace lull::collector
