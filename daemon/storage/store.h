// The interface of the store: one writer, any number of readers.
//
// All that one call of the writer's user puts between Begin and Commit becomes
// visible and durable together, or not at all. Readers see the state of one commit
// for as long as they live and never wait for the writer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/aggregate/cell.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/live_blocks.h"
#include "daemon/storage/rows.h"

namespace lull::storage {

// Events that the collector derives (aggregate::EventType from kFirstDerived on) lie in
// a ring of their own, beyond all that a relay can name. It takes no part in committed
// = stored + lost.
inline constexpr uint32_t kDerivedRing = 1 << 20;

inline constexpr uint64_t kMostSteps = 5'000;
// And so many of the first, which say when set-up was over.
inline constexpr uint64_t kFirstSteps = 10;

// Cells are stored for this many series at once, see ChunkKey.
inline constexpr uint32_t kChunkSeries = 64;
using CellChunk = std::array<aggregate::Cell, kChunkSeries>;

// The cells of series [index * kChunkSeries, ...) of one process in one bucket.
struct ChunkKey {
  int64_t process = 0;
  uint32_t level = 0;
  uint64_t bucket = 0;
  uint32_t index = 0;
  friend bool operator==(const ChunkKey&, const ChunkKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ChunkKey& k) {
    return H::combine(std::move(h), k.process, k.level, k.bucket, k.index);
  }
};

// Not thread-safe; a reader belongs to one thread at a time.
class StoreReader {
 public:
  virtual ~StoreReader() = default;

  // Newest first; jobs that are being deleted are left out. limit 0 = all.
  virtual absl::StatusOr<std::vector<JobRow>> Jobs(uint32_t limit) = 0;
  virtual absl::StatusOr<std::vector<JobRow>> FindJob(const std::string& uuid) = 0;
  // All 0 in a store that never had one.
  virtual absl::StatusOr<ClockRow> Clock() = 0;
  // What MarkForDeletion has hidden and DeleteSome has not finished with.
  virtual absl::StatusOr<bool> IsBeingDeleted(const std::string& uuid) = 0;
  // In the order of time.
  virtual absl::StatusOr<std::vector<StretchRow>> Stretches(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<ProcessRow>> Processes(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<RingRow>> Rings(int64_t process) = 0;
  virtual absl::StatusOr<std::vector<ApiRow>> Apis(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<FrameRow>> Frames(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<StackRow>> Stacks(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<RefRow>> Refs(int64_t process) = 0;
  virtual absl::StatusOr<std::vector<SiteRow>> Sites(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<SeriesRow>> AllSeries(int64_t process) = 0;
  virtual absl::StatusOr<std::vector<KernelNameRow>> KernelNames(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<KernelRow>> Kernels(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<GpuStreamRow>> GpuStreams(int64_t job) = 0;
  virtual absl::StatusOr<std::vector<GpuDeviceRow>> GpuDevices(int64_t process) = 0;
  // In the order of time.
  virtual absl::StatusOr<std::vector<TracingRow>> Tracing(int64_t process) = 0;
  virtual absl::StatusOr<std::vector<NonFiniteRow>> NonFinite(int64_t process) = 0;
  // The newest `limit` that end after `begin_ns` and start before `end_ns`, in the
  // order of time. limit 0 = all.
  virtual absl::StatusOr<std::vector<StepRow>> Steps(int64_t process, uint64_t begin_ns,
                                                     uint64_t end_ns,
                                                     uint32_t limit) = 0;
  // The `limit` first that are kept, in the order of time.
  virtual absl::StatusOr<std::vector<StepRow>> FirstSteps(int64_t process,
                                                          uint64_t limit) = 0;
  // By ordinal.
  virtual absl::StatusOr<std::vector<StepMemoryRow>> StepMemory(int64_t process) = 0;

  // One site, or one stack with its frames; empty when there is none such.
  virtual absl::StatusOr<SiteRow> Site(int64_t job, uint32_t id) = 0;
  virtual absl::StatusOr<std::vector<aggregate::Frame>> StackFrames(int64_t job,
                                                                    uint32_t stack) = 0;

  // False when nothing is stored under `key`; `chunk` is empty then.
  virtual absl::StatusOr<bool> Chunk(const ChunkKey& key, CellChunk& chunk) = 0;
  // Calls back with every cell that is not empty of buckets [first, end), ordered by
  // bucket.
  using CellCallback = std::function<void(uint32_t series, const aggregate::Cell&)>;
  virtual absl::Status Cells(int64_t process, uint32_t level, uint64_t first,
                             uint64_t end, const CellCallback& callback) = 0;
  // The same for one series alone; says the bucket of each cell.
  using SeriesCallback = std::function<void(uint64_t bucket, const aggregate::Cell&)>;
  virtual absl::Status SeriesCells(int64_t process, uint32_t series, uint32_t level,
                                   uint64_t first, uint64_t end,
                                   const SeriesCallback& callback) = 0;

  // Calls back with every event that starts in [begin_ns, end_ns). Those of one ring
  // come in the order of their positions, in which they were committed. Of several
  // rings it is always the turn of the one whose next event ended first. So what a
  // thread did comes in the order in which it ended, also where a ring had several
  // threads one after another, or a number of a thread stands in several rings.
  using EventCallback = std::function<void(const aggregate::Event&)>;
  virtual absl::Status Events(int64_t process, uint64_t begin_ns, uint64_t end_ns,
                              const EventCallback& callback) = 0;

  virtual absl::Status LiveBlocks(
      int64_t process, const std::function<void(const aggregate::BlockKey&,
                                                const aggregate::LiveBlock&)>&) = 0;
};

// Puts replace what has the same id. Not thread-safe.
class StoreWriter {
 public:
  virtual ~StoreWriter() = default;

  virtual absl::Status Begin() = 0;
  virtual absl::Status Commit() = 0;  // a failed commit is rolled back
  virtual void Rollback() = 0;

  // Sees what this writer has put, also before the commit.
  virtual StoreReader& reader() = 0;

  virtual absl::Status PutJob(JobRow& row) = 0;          // fills id when it is 0
  virtual absl::Status PutProcess(ProcessRow& row) = 0;  // also
  virtual absl::Status PutStretch(int64_t job, const StretchRow& row) = 0;
  virtual absl::Status PutClock(const ClockRow& row) = 0;
  virtual absl::Status PutRing(int64_t process, const RingRow& row) = 0;
  virtual absl::Status PutApi(int64_t job, const ApiRow& row) = 0;
  virtual absl::Status PutFrame(int64_t job, const FrameRow& row) = 0;
  virtual absl::Status PutStack(int64_t job, const StackRow& row) = 0;
  virtual absl::Status PutRef(int64_t process, const RefRow& row) = 0;
  virtual absl::Status PutSite(int64_t job, const SiteRow& row) = 0;
  virtual absl::Status PutSeries(int64_t process, const SeriesRow& row) = 0;
  virtual absl::Status PutKernelName(int64_t job, const KernelNameRow& row) = 0;
  virtual absl::Status PutKernel(int64_t job, const KernelRow& row) = 0;
  virtual absl::Status PutGpuStream(int64_t job, const GpuStreamRow& row) = 0;
  virtual absl::Status PutGpuDevice(int64_t process, const GpuDeviceRow& row) = 0;
  virtual absl::Status PutTracing(int64_t process, const TracingRow& row) = 0;
  virtual absl::Status PutNonFinite(int64_t process, const NonFiniteRow& row) = 0;
  // The newest kMostSteps of a process are kept, and the kFirstSteps first.
  virtual absl::Status PutStep(int64_t process, const StepRow& row) = 0;
  virtual absl::Status PutStepMemory(int64_t process, const StepMemoryRow& row) = 0;
  // Keeps those whose ordinal is a multiple of `stride`.
  virtual absl::Status ThinStepMemory(int64_t process, uint64_t stride) = 0;
  virtual absl::Status PutChunk(const ChunkKey& key, const CellChunk& chunk) = 0;

  // Stores events at positions first_position, first_position + 1, ... of a ring.
  // Small runs are merged into larger ones later on.
  virtual absl::Status AppendEvents(const ProcessRow& process, uint32_t ring,
                                    uint64_t first_position,
                                    const std::vector<aggregate::Event>& events) = 0;

  virtual absl::Status PutLiveBlock(int64_t process, const aggregate::BlockKey& key,
                                    const aggregate::LiveBlock& block) = 0;
  virtual absl::Status DeleteLiveBlock(int64_t process,
                                       const aggregate::BlockKey& key) = 0;
  virtual absl::Status DeleteLiveBlocks(int64_t process) = 0;

  // Retention, outside of Begin and Commit. Hides a job from readers; then deletes a
  // limited number of its rows per call, until nothing is left (false).
  virtual absl::Status MarkForDeletion(int64_t job) = 0;
  virtual absl::StatusOr<bool> DeleteSome() = 0;
  // Some bytes beside the database are kept for the case that the disk is full: what
  // deletes needs room, too. UseReserve gives them free, KeepReserve takes them again
  // if it can.
  virtual void UseReserve() = 0;
  virtual void KeepReserve() = 0;
  // Bytes in use in the database; what is free inside the file does not count.
  virtual absl::StatusOr<uint64_t> UsedBytes() = 0;
};

class Store {
 public:
  virtual ~Store() = default;
  virtual StoreWriter& writer() = 0;  // for one thread
  // Thread-safe.
  virtual absl::StatusOr<std::unique_ptr<StoreReader>> NewReader() = 0;
};

}  // namespace lull::storage
