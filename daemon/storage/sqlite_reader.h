// Reading side of the SQLite store; see store.h for the contract.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/storage/block_codec.h"
#include "daemon/storage/database.h"
#include "daemon/storage/store.h"

namespace lull::storage {

class SqliteReader : public StoreReader {
 public:
  explicit SqliteReader(std::unique_ptr<Database> db)
      : owned_(std::move(db)), db_(*owned_) {}
  explicit SqliteReader(Database& db) : db_(db) {}  // shares the writer's connection

  absl::StatusOr<std::vector<JobRow>> Jobs(uint32_t limit) override;
  absl::StatusOr<std::vector<JobRow>> FindJob(const std::string& uuid) override;
  absl::StatusOr<ClockRow> Clock() override;
  absl::StatusOr<bool> IsBeingDeleted(const std::string& uuid) override;
  absl::StatusOr<std::vector<StretchRow>> Stretches(int64_t job) override;
  absl::StatusOr<std::vector<ProcessRow>> Processes(int64_t job) override;
  absl::StatusOr<std::vector<RingRow>> Rings(int64_t process) override;
  absl::StatusOr<std::vector<ApiRow>> Apis(int64_t job) override;
  absl::StatusOr<std::vector<FrameRow>> Frames(int64_t job) override;
  absl::StatusOr<std::vector<StackRow>> Stacks(int64_t job) override;
  absl::StatusOr<std::vector<RefRow>> Refs(int64_t process) override;
  absl::StatusOr<std::vector<SiteRow>> Sites(int64_t job) override;
  absl::StatusOr<std::vector<SeriesRow>> AllSeries(int64_t process) override;
  absl::StatusOr<std::vector<KernelNameRow>> KernelNames(int64_t job) override;
  absl::StatusOr<std::vector<KernelRow>> Kernels(int64_t job) override;
  absl::StatusOr<std::vector<GpuStreamRow>> GpuStreams(int64_t job) override;
  absl::StatusOr<std::vector<GpuDeviceRow>> GpuDevices(int64_t process) override;
  absl::StatusOr<std::vector<TracingRow>> Tracing(int64_t process) override;
  absl::StatusOr<std::vector<NonFiniteRow>> NonFinite(int64_t process) override;
  absl::StatusOr<std::vector<StepRow>> FirstSteps(int64_t process,
                                                  uint64_t limit) override;
  absl::StatusOr<std::vector<StepRow>> Steps(int64_t process, uint64_t begin_ns,
                                             uint64_t end_ns, uint32_t limit) override;
  absl::StatusOr<std::vector<StepMemoryRow>> StepMemory(int64_t process) override;
  absl::StatusOr<SiteRow> Site(int64_t job, uint32_t id) override;
  absl::StatusOr<std::vector<aggregate::Frame>> StackFrames(int64_t job,
                                                            uint32_t stack) override;
  absl::StatusOr<bool> Chunk(const ChunkKey& key, CellChunk& chunk) override;
  absl::Status Cells(int64_t process, uint32_t level, uint64_t first, uint64_t end,
                     const CellCallback& callback) override;
  absl::Status SeriesCells(int64_t process, uint32_t series, uint32_t level,
                           uint64_t first, uint64_t end,
                           const SeriesCallback& callback) override;
  absl::Status Events(int64_t process, uint64_t begin_ns, uint64_t end_ns,
                      const EventCallback& callback) override;
  absl::Status LiveBlocks(
      int64_t process,
      const std::function<void(const aggregate::BlockKey&,
                               const aggregate::LiveBlock&)>&) override;

 private:
  std::unique_ptr<Database> owned_;
  Database& db_;
  BlockDecoder decoder_;
};

}  // namespace lull::storage
