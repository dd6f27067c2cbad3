// Ingest and queries without gRPC: what lulld does to one job, call by call.
#pragma once

#include <memory>
#include <string>

#include "daemon/collector/ingest/job_state.h"
#include "daemon/storage/store.h"
#include "ingest.pb.h"
#include "query.pb.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::test {

class Pipeline {
 public:
  explicit Pipeline(const lull::v1::Hello& hello);

  void Apply(const lull::v1::Batch& batch);
  void Apply(const lull::v1::ClockReading& reading) { job_->Apply(reading); }
  void Commit();
  // Forgets what is in memory, as a collector does that is killed; what was not
  // committed is gone.
  void Restart();

  lull::v1::ReportReply Report(const lull::v1::ReportRequest& request);
  lull::v1::Memory Memory(lull::v1::ReportRequest request);

  storage::Store& store() { return *store_; }
  std::string database() const { return directory_ / "a.db"; }

 private:
  lull::v1::Hello hello_;
  TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<collector::JobState> job_;
  storage::BlockEncoder encoder_;
};

}  // namespace lull::test
