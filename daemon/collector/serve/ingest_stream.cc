#include "daemon/collector/serve/ingest_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"
#include "daemon/collector/ingest/validate.h"
#include "daemon/collector/serve/grpc_status.h"

namespace lull::collector {

namespace {

// A relay wants to know that it errs, and how; a hostile one gets no long answers.
constexpr size_t kMaxRejectedTold = 64;

}  // namespace

IngestStream* IngestStream::Start(Committer& committer, ArmDesk& desk,
                                  const grpc::Status& refusal,
                                  std::function<void()> on_done) {
  auto stream = std::make_shared<IngestStream>(committer, desk, std::move(on_done));
  stream->self_ = stream;
  if (refusal.ok()) {
    stream->StartRead(&stream->request_);
  } else {
    stream->End(refusal);
  }
  return stream.get();
}

void IngestStream::OnReadDone(bool ok) {
  if (!ok) {  // the relay is done sending, or gone, or we ended the stream
    MutexLock lock(mutex_);
    half_closed_ = true;
    return FinishIfPossible();
  }
  absl::StatusOr<bool> may_continue = Handle();
  if (!may_continue.ok()) return End(ToGrpc(may_continue.status()));
  if (*may_continue) ReadNext();
}

absl::Status IngestStream::CheckOrder() {
  bool hello = request_.has_hello();
  if (request_.message_case() == lull::v1::IngestRequest::MESSAGE_NOT_SET) {
    return absl::InvalidArgumentError(
        "message is neither hello, batch, arming nor clock");
  }
  if (hello != job_.empty()) {
    return absl::FailedPreconditionError(hello ? "hello came twice"
                                               : "the first message is not hello");
  }
  if (request_.has_batch() && request_.batch().sequence() < last_sequence_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "sequence ", request_.batch().sequence(), " after ", last_sequence_));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IngestStream::Handle() {
  LULL_RETURN_IF_ERROR(CheckOrder());
  if (request_.has_hello()) {
    LULL_RETURN_IF_ERROR(ValidateHello(request_.hello()));
    job_ = request_.hello().job().id();
  } else if (request_.has_arming()) {
    LULL_RETURN_IF_ERROR(ValidateArming("arming", request_.arming()));
    TellDesk();
    request_.Clear();
    return true;
  } else if (request_.has_clock()) {
    LULL_RETURN_IF_ERROR(ValidateClock(request_.clock()));
  } else {
    Rejected(TakeBadRunsOut(request_.mutable_batch()));
    LULL_RETURN_IF_ERROR(ValidateBatch(request_.batch()));
    last_sequence_ = request_.batch().sequence();
    MutexLock lock(mutex_);
    awaited_ = last_sequence_;
  }
  TellDesk();
  size_t bytes = request_.ByteSizeLong();
  lull::v1::IngestRequest taken = std::move(request_);
  request_.Clear();
  // Nothing may be touched after this: where it says no, the committer may have the
  // next request read already.
  return committer_.Submit(shared_from_this(), job_, std::move(taken), bytes);
}

// What the message says of arming.
void IngestStream::TellDesk() {
  if (request_.has_hello()) {
    const lull::v1::Hello& hello = request_.hello();
    desk_.Arrived(job_, shared_from_this(),
                  hello.has_arming() ? std::optional(hello.arming()) : std::nullopt);
  } else if (request_.has_arming()) {
    desk_.Reported(job_, this, request_.arming());
  } else if (request_.batch().has_job_end()) {
    desk_.JobEnded(job_);
  }
}

void IngestStream::MayContinue() { ReadNext(); }

// Under the lock: after Finish, gRPC's side of the stream may be gone already.
void IngestStream::ReadNext() {
  MutexLock lock(mutex_);
  if (!finished_) StartRead(&request_);
}

void IngestStream::Rejected(std::vector<lull::v1::RejectedRun> runs) {
  if (runs.empty()) return;
  const lull::v1::RejectedRun& first = runs.front();
  LogDebug(absl::StrCat("job ", job_, ", process ", first.process_key(), ": rejected ",
                        runs.size(), " runs of events: ", first.why()));
  MutexLock lock(mutex_);
  for (lull::v1::RejectedRun& run : runs) {
    if (rejected_.size() == kMaxRejectedTold) break;
    rejected_.push_back(std::move(run));
  }
}

void IngestStream::Committed(uint64_t sequence) {
  MutexLock lock(mutex_);
  committed_ = sequence;
  if (finished_ || ending_) return;
  WriteNews();
  FinishIfPossible();
}

void IngestStream::SendCommand(const lull::v1::ArmCommand& command) {
  MutexLock lock(mutex_);
  command_ = command;
  WriteNews();
}

void IngestStream::WriteNews() {
  if (writing_ || ending_ || finished_) return;
  if (committed_ <= acknowledged_ && !command_) return;
  writing_ = true;
  acknowledged_ = committed_;
  reply_.Clear();
  reply_.set_acknowledged_sequence(acknowledged_);
  // Some may be of batches that are not acknowledged yet; to tell them early is no
  // harm.
  for (auto& run : rejected_) *reply_.add_rejected() = std::move(run);
  rejected_.clear();
  if (command_) *reply_.mutable_arm() = *std::exchange(command_, std::nullopt);
  StartWrite(&reply_);
}

void IngestStream::OnWriteDone(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  if (ok) WriteNews();
  FinishIfPossible();
}

void IngestStream::Failed(const absl::Status& status) { End(ToGrpc(status)); }

void IngestStream::End(const grpc::Status& status) {
  MutexLock lock(mutex_);
  if (ending_) return;
  ending_ = true;
  status_ = status;
  FinishIfPossible();
}

// A stream ends with an error at once, otherwise when all that it sent is durable
// and said to be; but never beside a write.
void IngestStream::FinishIfPossible() {
  if (finished_ || writing_) return;
  bool complete = half_closed_ && acknowledged_ == awaited_;
  if (!ending_ && !complete) return;
  finished_ = true;
  Finish(ending_ ? status_ : grpc::Status::OK);
}

void IngestStream::OnCancel() {
  End(grpc::Status(grpc::StatusCode::CANCELLED, "the relay is gone"));
}

void IngestStream::OnDone() {
  if (!job_.empty()) desk_.Left(job_, this);
  on_done_();
  std::shared_ptr<IngestStream> last = std::move(self_);
}

}  // namespace lull::collector
