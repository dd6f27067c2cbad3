#include "daemon/relay/deliver/upstream.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/mutex.h"
#include "daemon/base/status.h"
#include "daemon/base/thread.h"
#include "daemon/relay/deliver/clock_watch.h"
#include "ingest.grpc.pb.h"

namespace lull::relay {
namespace {

using Stream = grpc::ClientReaderWriter<lull::v1::IngestRequest, lull::v1::IngestReply>;

// Batches on their way: enough to keep a slow line busy, few enough that a break
// costs little.
constexpr uint64_t kMaxUnacknowledged = 64;

bool IsRefusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

// Whether one batch is wrong, and not all that this relay may send.
bool IsAboutABatch(const absl::Status& status) {
  return absl::IsInvalidArgument(status) &&
         !absl::StartsWith(status.message(), "hello");
}

}  // namespace

class Upstream::Impl {
 public:
  Impl(CollectorAddress collector, lull::v1::Hello hello, Spool* spool,
       AsyncSymbolizer* symbols, UpstreamTiming timing)
      : collector_(std::move(collector)),
        hello_(std::move(hello)),
        spool_(spool),
        symbols_(symbols),
        timing_(timing),
        thread_([this] { Run(); }) {}

  ~Impl() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
      if (context_ != nullptr) context_->TryCancel();
    }
    spool_->Interrupt();
    thread_.join();
  }

  UpstreamStatus status() const {
    MutexLock lock(mutex_);
    return status_;
  }

  void TellArming(const lull::v1::ArmState& state) {
    {
      MutexLock lock(mutex_);
      arming_ = state;
      arming_told_ = false;
    }
    spool_->Interrupt();
  }

  std::optional<lull::v1::ArmCommand> TakeCommand() {
    MutexLock lock(mutex_);
    return std::exchange(command_, std::nullopt);
  }

  void Hurry() {
    MutexLock lock(mutex_);
    hurries_until_ = SteadyNow() + timing_.hurry;
    woken_ = true;
    changed_.notify_all();
  }

  void Watch() {
    MutexLock lock(mutex_);
    if (context_ == nullptr || sent_ <= spool_->acknowledged()) {
      last_progress_ = SteadyNow();
    } else if (SteadyNow() - last_progress_ > timing_.stall) {
      LogWarning("the collector acknowledges nothing; connecting again");
      context_->TryCancel();
      last_progress_ = SteadyNow();
    }
  }

 private:
  bool stopping() const {
    MutexLock lock(mutex_);
    return stopping_;
  }

  // Threads of gRPC are started from here, too.
  void Run() {
    prctl(PR_SET_NAME, "lull_upstream");
    WaitForTurns();
    absl::Duration backoff = timing_.first_backoff;
    while (!stopping()) {
      uint64_t before = spool_->acknowledged();
      absl::Status status = RunStream();
      if (stopping()) break;
      bool of_a_batch = IsAboutABatch(status) && HasBatchesUnderWay();
      bool refused = IsRefusal(status) && !of_a_batch;
      {
        MutexLock lock(mutex_);
        status_.connected = false;
        status_.refused = refused;
        status_.last_error = status;
      }
      LogInfo(absl::StrCat("stream to the collector: ", status.ToString()));
      if (spool_->acknowledged() > before) backoff = timing_.first_backoff;
      if (of_a_batch && CountRefusal()) backoff = timing_.first_backoff;
      if (Hurries()) backoff = std::min(backoff, timing_.hurried_backoff);
      const bool woken = Sleep(Spread(refused ? timing_.refused_backoff : backoff));
      backoff = woken ? timing_.first_backoff
                      : std::min(backoff * 2, timing_.longest_backoff);
    }
  }

  bool HasBatchesUnderWay() const {
    MutexLock lock(mutex_);
    return sent_ > spool_->acknowledged();
  }

  // Finds out which batch it is: after the first refusal batches are sent one by one
  // until all that were under way then are through. True when this brought us further.
  bool CountRefusal() {
    uint64_t suspect = spool_->acknowledged() + 1;
    {
      MutexLock lock(mutex_);
      bool alone = sent_ == suspect;
      one_by_one_until_ = std::max(one_by_one_until_, sent_);
      if (!alone) return true;
      if (suspect != suspect_) refusals_ = 0;
      suspect_ = suspect;
      if (++refusals_ < kRefusalsOfABatch) return false;
      refusals_ = 0;
      if (suspect != last_aside_) ++status_.batches_set_aside;
      last_aside_ = suspect;
    }
    spool_->SetAside(suspect);
    return true;
  }

  bool Hurries() const {
    MutexLock lock(mutex_);
    return SteadyNow() < hurries_until_;
  }

  // All relays of a fleet lose their collector at one moment. They do not come back at
  // one.
  absl::Duration Spread(absl::Duration duration) {
    return duration * std::uniform_real_distribution<>(0.5, 1.0)(random_);
  }

  // True: it was ended by Hurry().
  bool Sleep(absl::Duration duration) {
    MutexLock lock(mutex_);
    changed_.wait_for(
        lock.native(), absl::ToChronoNanoseconds(duration),
        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || woken_; });
    return std::exchange(woken_, false);
  }

  // One stream from Hello to its end; never OK, because a collector does not end
  // a stream by itself.
  absl::Status RunStream() {
    // A channel of its own for each try: while one that failed is in backoff, calls
    // fail at once, and between calls nobody polls it, so that it comes back only
    // with gRPC's backup poll, 5 s later.
    LULL_ASSIGN_OR_RETURN(auto channel, MakeChannel(collector_));
    auto stub = lull::v1::Ingest::NewStub(channel);
    grpc::ClientContext context;
    Authorize(collector_.token, &context);
    {
      MutexLock lock(mutex_);
      if (stopping_) return absl::CancelledError("stopping");
      context_ = &context;
      sent_ = 0;
      stream_ended_ = false;
      last_progress_ = SteadyNow();
    }
    std::unique_ptr<Stream> stream = stub->Stream(&context);
    std::thread reader([this, &stream] { ReadReplies(stream.get()); });
    WriteBatches(*stub, stream.get());
    // A cancel would hide the collector's own word from Finish().
    if (!StreamHasEnded()) context.TryCancel();
    reader.join();
    {
      MutexLock lock(mutex_);
      context_ = nullptr;
    }
    absl::Status status = FromGrpc(stream->Finish());
    if (status.ok()) return absl::UnavailableError("the collector ended the stream");
    return status;
  }

  void ReadReplies(Stream* stream) {
    lull::v1::IngestReply reply;
    while (stream->Read(&reply)) {
      spool_->Acknowledge(reply.acknowledged_sequence());
      MutexLock lock(mutex_);
      if (reply.has_arm()) command_ = reply.arm();
      for (const lull::v1::RejectedRun& run : reply.rejected()) {
        status_.events_rejected += run.events();
        LogWarning(absl::StrCat("the collector rejected ", run.events(),
                                " events of process ", run.process_key(), ", ring ",
                                run.ring(), ": ", run.why()));
      }
      status_.connected = true;
      status_.refused = false;
      status_.last_error = absl::OkStatus();
      last_progress_ = SteadyNow();
    }
    MutexLock lock(mutex_);
    stream_ended_ = true;
    changed_.notify_all();
    spool_->Interrupt();
  }

  bool StreamHasEnded() const {
    MutexLock lock(mutex_);
    return stream_ended_;
  }

  bool MaySend(uint64_t sent) const {
    MutexLock lock(mutex_);
    uint64_t acknowledged = spool_->acknowledged();
    return sent <
           acknowledged + (acknowledged < one_by_one_until_ ? 1 : kMaxUnacknowledged);
  }

  // What the collector has not been told yet.
  std::optional<lull::v1::ArmState> ArmingNews() {
    MutexLock lock(mutex_);
    if (arming_told_) return std::nullopt;
    arming_told_ = true;
    return arming_;
  }

  bool TellArmingNews(Stream* stream) {
    auto arming = ArmingNews();
    if (!arming) return true;
    lull::v1::IngestRequest request;
    *request.mutable_arming() = *std::move(arming);
    return stream->Write(request);
  }

  // A collector that answers knows the message, too. False: the stream is broken.
  static bool TellClock(const std::optional<lull::v1::ClockReading>& reading,
                        Stream* stream) {
    if (!reading) return true;
    lull::v1::IngestRequest request;
    *request.mutable_clock() = *reading;
    return stream->Write(request);
  }

  // Until the stream breaks or we stop.
  void WriteBatches(lull::v1::Ingest::StubInterface& stub, Stream* stream) {
    ClockWatch clock(hello_.job(), collector_.token);
    // Before Hello: a job that has ended is unloaded soon after it, and its last batch
    // must not come later.
    std::optional<lull::v1::ClockReading> reading;
    if (clock.Due()) reading = clock.Read(stub);
    lull::v1::IngestRequest request;
    *request.mutable_hello() = hello_;
    {
      MutexLock lock(mutex_);
      if (arming_) *request.mutable_hello()->mutable_arming() = *arming_;
      arming_told_ = true;
    }
    if (!stream->Write(request) || !TellClock(reading, stream)) return AwaitEnd();
    uint64_t sent = spool_->acknowledged();
    while (!StreamHasEnded() && !stopping()) {
      if (!TellArmingNews(stream)) return AwaitEnd();
      if (clock.Due() && !TellClock(clock.Read(stub), stream)) return AwaitEnd();
      if (!MaySend(sent)) {
        absl::SleepFor(absl::Milliseconds(2));
        continue;
      }
      auto entry = spool_->WaitForNext(sent, absl::Milliseconds(200));
      if (!entry) continue;
      if (!request.mutable_batch()->ParseFromString(entry->body)) {
        LogError("a batch in the spool cannot be read");
        spool_->SetAside(entry->sequence);
        continue;
      }
      while (symbols_ != nullptr && !symbols_->Name(request.mutable_batch())) {
        if (StreamHasEnded() || stopping()) return;
        if (!TellArmingNews(stream)) return AwaitEnd();
      }
      if (request.batch().has_job_end()) {
        // Once more, so that no event is farther from a reading than it must be.
        if (clock.DueBeforeTheEnd() && !TellClock(clock.Read(stub), stream)) {
          return AwaitEnd();
        }
        clock.Stop();
      }
      sent = entry->sequence;
      {
        MutexLock lock(mutex_);
        sent_ = sent;
      }
      if (!stream->Write(request)) return AwaitEnd();
    }
  }

  // A failed Write means that the stream is broken; the reader will learn it too.
  void AwaitEnd() {
    MutexLock lock(mutex_);
    changed_.wait_for(
        lock.native(), std::chrono::seconds(5),
        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stream_ended_; });
  }

  const CollectorAddress collector_;
  const lull::v1::Hello hello_;
  Spool* const spool_;
  AsyncSymbolizer* const symbols_;
  const UpstreamTiming timing_;
  std::minstd_rand random_{
      static_cast<uint32_t>(MonotonicNs())};  // of the thread alone

  mutable Mutex mutex_;
  std::condition_variable changed_;  // stopping_, stream_ended_ or woken_ was set
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stream_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time hurries_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // last sequence on this stream
  uint64_t one_by_one_until_ ABSL_GUARDED_BY(mutex_) = 0;
  // A batch that was refused alone, so often in a row:
  uint64_t suspect_ ABSL_GUARDED_BY(mutex_) = 0;
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_aside_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_progress_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  UpstreamStatus status_ ABSL_GUARDED_BY(mutex_);
  std::optional<lull::v1::ArmState> arming_ ABSL_GUARDED_BY(mutex_);
  bool arming_told_ ABSL_GUARDED_BY(mutex_) = true;  // on the present stream
  std::optional<lull::v1::ArmCommand> command_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

Upstream::Upstream(CollectorAddress collector, lull::v1::Hello hello, Spool* spool,
                   AsyncSymbolizer* symbols, UpstreamTiming timing)
    : impl_(std::make_unique<Impl>(std::move(collector), std::move(hello), spool,
                                   symbols, timing)) {}
Upstream::~Upstream() = default;

UpstreamStatus Upstream::status() const { return impl_->status(); }
void Upstream::TellArming(const lull::v1::ArmState& state) { impl_->TellArming(state); }
std::optional<lull::v1::ArmCommand> Upstream::TakeCommand() {
  return impl_->TakeCommand();
}
void Upstream::Hurry() { impl_->Hurry(); }
void Upstream::Watch() { impl_->Watch(); }

}  // namespace lull::relay
