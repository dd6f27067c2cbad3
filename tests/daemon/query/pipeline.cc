#include "tests/daemon/query/pipeline.h"

#include <gtest/gtest.h>

#include "daemon/collector/ingest/validate.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"

namespace lull::test {

Pipeline::Pipeline(const lull::v1::Hello& hello) : hello_(hello) {
  auto store = storage::Store::Open(database());
  EXPECT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  Restart();
}

void Pipeline::Restart() {
  auto job = collector::JobState::Load(store_->writer(), hello_);
  ASSERT_TRUE(job.ok()) << job.status();
  job_ = *std::move(job);
  job_->Apply(hello_);
}

void Pipeline::Apply(const lull::v1::Batch& batch) {
  absl::Status status = collector::ValidateBatch(batch);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_TRUE(job_->Apply(batch).empty());
  job_->PackFullRuns(encoder_);
}

void Pipeline::Commit() {
  storage::StoreWriter& writer = store_->writer();
  ASSERT_TRUE(writer.Begin().ok());
  absl::Status status = job_->Flush(writer, 1);
  ASSERT_TRUE(status.ok()) << status;
  status = writer.Commit();
  ASSERT_TRUE(status.ok()) << status;
}

lull::v1::ReportReply Pipeline::Report(const lull::v1::ReportRequest& request) {
  lull::v1::ReportReply reply;
  absl::Status status = query::Report(
      *store_, [](const std::string&) { return true; }, request, &reply);
  EXPECT_TRUE(status.ok()) << status;
  return reply;
}

lull::v1::Memory Pipeline::Memory(lull::v1::ReportRequest request) {
  request.add_sections(lull::v1::SECTION_MEMORY);
  return Report(request).memory();
}

}  // namespace lull::test
