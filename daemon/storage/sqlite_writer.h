// Writing side of the SQLite store; see store.h for the contract.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/storage/block_codec.h"
#include "daemon/storage/database.h"
#include "daemon/storage/sqlite_reader.h"
#include "daemon/storage/store.h"

namespace lull::storage {

class SqliteWriter : public StoreWriter {
 public:
  explicit SqliteWriter(std::unique_ptr<Database> db)
      : db_(std::move(db)), reader_(*db_) {}

  absl::Status Begin() override;
  absl::Status Commit() override;
  void Rollback() override;
  StoreReader& reader() override { return reader_; }

  absl::Status PutJob(JobRow& row) override;
  absl::Status PutProcess(ProcessRow& row) override;
  absl::Status PutStretch(int64_t job, const StretchRow& row) override;
  absl::Status PutClock(const ClockRow& row) override;
  absl::Status PutRing(int64_t process, const RingRow& row) override;
  absl::Status PutApi(int64_t job, const ApiRow& row) override;
  absl::Status PutFrame(int64_t job, const FrameRow& row) override;
  absl::Status PutStack(int64_t job, const StackRow& row) override;
  absl::Status PutRef(int64_t process, const RefRow& row) override;
  absl::Status PutSite(int64_t job, const SiteRow& row) override;
  absl::Status PutSeries(int64_t process, const SeriesRow& row) override;
  absl::Status PutKernelName(int64_t job, const KernelNameRow& row) override;
  absl::Status PutKernel(int64_t job, const KernelRow& row) override;
  absl::Status PutGpuStream(int64_t job, const GpuStreamRow& row) override;
  absl::Status PutGpuDevice(int64_t process, const GpuDeviceRow& row) override;
  absl::Status PutTracing(int64_t process, const TracingRow& row) override;
  absl::Status PutNonFinite(int64_t process, const NonFiniteRow& row) override;
  absl::Status PutStep(int64_t process, const StepRow& row) override;
  absl::Status PutStepMemory(int64_t process, const StepMemoryRow& row) override;
  absl::Status ThinStepMemory(int64_t process, uint64_t stride) override;
  absl::Status PutChunk(const ChunkKey& key, const CellChunk& chunk) override;
  absl::Status AppendEvents(const ProcessRow& process, uint32_t ring,
                            uint64_t first_position,
                            const std::vector<aggregate::Event>& events) override;
  absl::Status PutLiveBlock(int64_t process, const aggregate::BlockKey& key,
                            const aggregate::LiveBlock& block) override;
  absl::Status DeleteLiveBlock(int64_t process,
                               const aggregate::BlockKey& key) override;
  absl::Status DeleteLiveBlocks(int64_t process) override;
  absl::Status MarkForDeletion(int64_t job) override;
  absl::StatusOr<bool> DeleteSome() override;
  void UseReserve() override;
  void KeepReserve() override;
  absl::StatusOr<uint64_t> UsedBytes() override;

 private:
  absl::Status PutBlock(const ProcessRow& process, uint32_t ring,
                        uint64_t first_position, const aggregate::Event* events,
                        size_t count);
  absl::Status MergeSmallBlocks(const ProcessRow& process, uint32_t ring);
  absl::StatusOr<bool> DeleteSomeOf(int64_t job);
  std::string ReservePath() const { return db_->path() + ".reserve"; }

  std::unique_ptr<Database> db_;
  SqliteReader reader_;
  BlockEncoder encoder_;
  BlockDecoder decoder_;
};

}  // namespace lull::storage
