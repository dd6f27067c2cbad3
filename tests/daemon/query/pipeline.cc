#include "tests/daemon/query/pipeline.h"

#include <gtest/gtest.h>

#include "daemon/collector/validate.h"
#include "daemon/query/job_lookup.h"
#include "daemon/query/memory.h"
#include "daemon/query/report.h"
#include "daemon/query/steps.h"
#include "daemon/query/totals.h"
#include "daemon/storage/sqlite_store.h"

namespace lull::test {

Pipeline::Pipeline(const lull::v1::Hello& hello) : hello_(hello) {
  auto store = storage::OpenSqliteStore(database());
  EXPECT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  Restart();
}

void Pipeline::Restart() {
  auto job = collector::JobState::Load(store_->writer().reader(), hello_);
  ASSERT_TRUE(job.ok()) << job.status();
  job_ = *std::move(job);
  job_->Apply(hello_);
}

void Pipeline::Apply(const lull::v1::Batch& batch) {
  absl::Status status = collector::ValidateBatch(batch);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(job_->Apply(batch).empty());
}

void Pipeline::Commit() {
  storage::StoreWriter& writer = store_->writer();
  ASSERT_TRUE(writer.Begin().ok());
  absl::Status status = job_->Flush(writer, 1);
  ASSERT_TRUE(status.ok()) << status;
  status = writer.Commit();
  ASSERT_TRUE(status.ok()) << status;
}

std::vector<query::ProcessSums> Pipeline::Load(storage::StoreReader& reader,
                                               const storage::JobRow& job,
                                               const lull::v1::ReportRequest& request) {
  std::vector<query::ProcessSums> processes;
  for (const auto& row : query::SelectProcesses(*reader.Processes(job.id), request)) {
    auto sums = query::LoadSums(reader, job, row, query::RangeOf(request));
    EXPECT_TRUE(sums.ok()) << sums.status();
    processes.push_back(*std::move(sums));
  }
  return processes;
}

lull::v1::MemoryReply Pipeline::Memory(const lull::v1::ReportRequest& request) {
  lull::v1::MemoryReply reply;
  auto reader = *store_->NewReader();
  auto job = query::FindJob(*reader, request.job());
  EXPECT_TRUE(job.ok()) << job.status();
  query::Names names(*reader, job->id);
  absl::Status status =
      query::FillMemory(*reader, *job, Load(*reader, *job, request), request,
                        query::MemoryDetail::kAll, names, &reply);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(names.status().ok()) << names.status();
  return reply;
}

lull::v1::ReportReply Pipeline::Report(const lull::v1::ReportRequest& request) {
  lull::v1::ReportReply reply;
  auto reader = *store_->NewReader();
  auto job = query::FindJob(*reader, request.job());
  EXPECT_TRUE(job.ok()) << job.status();
  std::vector<query::ProcessSums> processes = Load(*reader, *job, request);
  query::Names names(*reader, job->id);
  query::FillReport(*job, processes, request, names, &reply);
  absl::Status collections = query::FillCollectionsInSteps(
      *reader, *job, processes, query::RangeOf(request), reply.mutable_gc());
  EXPECT_TRUE(collections.ok()) << collections;
  EXPECT_TRUE(query::FillLosses(*reader, *job, request, reply.mutable_losses()).ok());
  query::FillOverhead(*job, processes, reply.mutable_overhead());
  EXPECT_TRUE(
      query::FillJob(*reader, *job, /*has_relay=*/true, reply.mutable_job()).ok());
  EXPECT_TRUE(names.status().ok()) << names.status();
  return reply;
}

}  // namespace lull::test
