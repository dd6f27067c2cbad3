// One stream of a relay, from Hello to its end.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/mutex.h"
#include "daemon/collector/ingest/committer.h"
#include "daemon/collector/serve/arm_desk.h"
#include "ingest.pb.h"

namespace lull::collector {

// gRPC calls On*, the committer calls the methods of CommitListener, each on threads
// of its own. Lives until gRPC is done with it and the committer holds it no more.
class IngestStream
    : public grpc::ServerBidiReactor<lull::v1::IngestRequest, lull::v1::IngestReply>,
      public CommitListener,
      public CommandListener,
      public std::enable_shared_from_this<IngestStream> {
 public:
  // A stream that `refusal` (when not OK) ends at once. `on_done` is called when
  // gRPC is done with it.
  static IngestStream* Start(Committer& committer, ArmDesk& desk,
                             const grpc::Status& refusal,
                             std::function<void()> on_done);
  IngestStream(Committer& committer, ArmDesk& desk, std::function<void()> on_done)
      : committer_(committer), desk_(desk), on_done_(std::move(on_done)) {}

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  void Rejected(std::vector<lull::v1::RejectedRun> runs) override;
  void Committed(uint64_t sequence) override;
  void Failed(const absl::Status& status) override;
  void MayContinue() override;

  void SendCommand(const lull::v1::ArmCommand& command) override;

 private:
  // Takes request_: whether the next may be read. An error ends the stream.
  absl::StatusOr<bool> Handle();
  absl::Status CheckOrder();
  void TellDesk();
  void ReadNext();
  void WriteNews() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const grpc::Status& status);
  void FinishIfPossible() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Committer& committer_;
  ArmDesk& desk_;
  const std::function<void()> on_done_;
  std::shared_ptr<IngestStream> self_;  // until OnDone

  // Only for the read that is under way.
  lull::v1::IngestRequest request_;
  std::string job_;
  uint64_t last_sequence_ = 0;

  Mutex mutex_;
  lull::v1::IngestReply reply_
      ABSL_GUARDED_BY(mutex_);  // of the write that is under way alone
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;  // sent, or being sent
  uint64_t committed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t awaited_ ABSL_GUARDED_BY(mutex_) = 0;  // highest sequence submitted
  std::optional<lull::v1::ArmCommand> command_ ABSL_GUARDED_BY(mutex_);  // to be sent
  std::vector<lull::v1::RejectedRun> rejected_ ABSL_GUARDED_BY(mutex_);  // to be sent
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lull::collector
