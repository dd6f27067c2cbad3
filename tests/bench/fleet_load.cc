// What the relays of many hosts send, at a fixed rate: each has a stream, a connection
// and a job of its own, and sends what its ranks recorded every half second. It obeys
// what real relays obey: batches in order, 64 at most that are not acknowledged, from
// the first of these on after a break, a spool of 256 MiB, and the waits between tries.
// All jobs send the same bytes but for their Hello, so that making them costs little.
// Ranks tell of calls alone: of no steps, samples or counters.
//
//   fleet_load SOCKET RELAYS RANKS_PER_RELAY EVENTS_PER_RANK_AND_SECOND SECONDS
//
// A line of JSON every ten seconds; the last one is of all the time. Lag is the time
// from when the last event of a batch was recorded until the batch was acknowledged; in
// a line it is that of batches that were acknowledged since the line before. After
// SECONDS nothing new is recorded, and what is under way has a minute to arrive.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/base/mutex.h"
#include "ingest.grpc.pb.h"
#include "tests/bench/made_up_rank.h"
#include "tests/daemon/collector/test_job.h"

namespace lull {
namespace {

using Stub = grpc::TemplatedGenericStub<grpc::ByteBuffer, v1::IngestReply>;

constexpr absl::Duration kBatchAge = absl::Milliseconds(500);
constexpr uint64_t kMaxUnacknowledged = 64;
constexpr uint64_t kSpoolBytes = 256u << 20;
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kLongestBackoff = absl::Seconds(2);

grpc::ByteBuffer Serialized(const v1::IngestRequest& request) {
  grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// The batches of all relays, made when the first of them needs one, and kept for as
// long as one may still need them.
class Recorded {
 public:
  Recorded(uint64_t ranks, double events_per_rank) {
    const double per_batch = events_per_rank * absl::ToDoubleSeconds(kBatchAge);
    events_ = std::max<uint64_t>(1, static_cast<uint64_t>(per_batch));
    test::Pace pace;
    pace.gap_ns = static_cast<uint64_t>(1e9 / events_per_rank);
    pace.jitter_ns = std::max<uint64_t>(1, pace.gap_ns / 8);
    for (uint64_t key = 1; key <= ranks; ++key) {
      ranks_.emplace_back(key, /*traced=*/false, pace);
    }
  }

  // Sequences are 1, 2, 3...
  grpc::ByteBuffer Batch(uint64_t sequence) {
    MutexLock lock(mutex_);
    while (first_ + batches_.size() <= sequence) Make();
    return batches_[sequence - first_].bytes;
  }
  uint64_t Bytes(uint64_t sequence) {
    MutexLock lock(mutex_);
    while (first_ + batches_.size() <= sequence) Make();
    return batches_[sequence - first_].size;
  }
  void ForgetUpTo(uint64_t sequence) {
    MutexLock lock(mutex_);
    while (first_ <= sequence && !batches_.empty()) {
      batches_.pop_front();
      ++first_;
    }
  }
  uint64_t events_per_batch() const { return events_ * ranks_.size(); }

 private:
  struct Made {
    grpc::ByteBuffer bytes;
    uint64_t size;
  };

  void Make() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t sequence = first_ + batches_.size();
    v1::IngestRequest request;
    v1::Batch& batch = *request.mutable_batch();
    batch.set_sequence(sequence);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (sequence == 1) test::AddMadeUpIdentity(batch, i + 1);
      ranks_[i].AddTo(batch, events_);
    }
    grpc::ByteBuffer bytes = Serialized(request);
    const uint64_t size = bytes.Length();
    batches_.push_back({std::move(bytes), size});
  }

  Mutex mutex_;
  uint64_t events_ = 0;
  std::vector<test::MadeUpRank> ranks_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 1;
  std::deque<Made> batches_ ABSL_GUARDED_BY(mutex_);
};

class Relay {
 public:
  Relay(const std::string& address, uint32_t number, Recorded& recorded,
        absl::Duration phase)
      : address_(address),
        number_(number),
        random_(number),
        recorded_(recorded),
        hello_(test::MakeHello(test::MakeJobId(number), absl::StrCat("job-", number))),
        next_due_(absl::Now() + phase + kBatchAge) {}

  // Call every few milliseconds, from one thread.
  void Tick(absl::Time now, bool records) {
    std::unique_ptr<Call> ended;
    MutexLock lock(mutex_);
    if (records && now >= next_due_) Record();
    if (call_ != nullptr && call_->ended) {
      ended = std::move(call_);
      ++breaks_;
      retry_at_ = now + backoff_ * std::uniform_real_distribution<>(0.5, 1.0)(random_);
      backoff_ = std::min(backoff_ * 2, kLongestBackoff);
    }
    if (call_ == nullptr && now >= retry_at_) Connect();
    Send();
  }

  struct Told {
    uint64_t recorded = 0;  // batches
    uint64_t lost = 0;
    uint64_t acknowledged = 0;
    uint64_t breaks = 0;
    uint64_t spool_bytes = 0;
    bool connected = false;
  };
  Told told() const {
    MutexLock lock(mutex_);
    return {recorded_batches_, lost_batches_, acknowledged_batches_,
            breaks_,           spool_bytes_,  call_ != nullptr && call_->heard};
  }
  uint64_t acknowledged() const {
    MutexLock lock(mutex_);
    return acknowledged_;
  }
  void TakeLags(std::vector<double>& lags) {
    MutexLock lock(mutex_);
    lags.insert(lags.end(), lags_.begin(), lags_.end());
    lags_.clear();
  }
  void Stop() {
    MutexLock lock(mutex_);
    if (call_ != nullptr) call_->context.TryCancel();
  }
  bool stopped() const {
    MutexLock lock(mutex_);
    return call_ == nullptr || call_->ended;
  }

 private:
  // One stream, from Hello to its end.
  struct Call : grpc::ClientBidiReactor<grpc::ByteBuffer, v1::IngestReply> {
    explicit Call(Relay& owner) : relay(owner) {}
    void OnWriteDone(bool ok) override {
      MutexLock lock(relay.mutex_);
      writing = false;
      if (ok) relay.Send();
    }
    void OnReadDone(bool ok) override {
      {
        MutexLock lock(relay.mutex_);
        if (ok) {
          heard = true;
          relay.Acknowledge(reply.acknowledged_sequence());
          relay.Send();
          StartRead(&reply);
          return;
        }
        open = false;
      }
      RemoveHold();
    }
    void OnDone(const grpc::Status&) override {
      MutexLock lock(relay.mutex_);
      ended = true;
    }

    Relay& relay;
    grpc::ClientContext context;
    grpc::ByteBuffer request;
    v1::IngestReply reply;
    bool open = true;  // all of this under the lock of the relay
    bool writing = false;
    bool heard = false;
    bool ended = false;
  };

  struct Kept {
    uint64_t sequence;
    uint64_t bytes;
    absl::Time recorded;
  };

  void Record() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t sequence = ++recorded_batches_;
    const uint64_t bytes = recorded_.Bytes(sequence);
    if (spool_bytes_ + bytes > kSpoolBytes) {
      ++lost_batches_;
    } else {
      spool_bytes_ += bytes;
      spool_.push_back({sequence, bytes, next_due_});
    }
    next_due_ += kBatchAge;
  }

  void Connect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    grpc::ChannelArguments own;  // or they would share connections
    own.SetInt("lull.bench.relay", static_cast<int>(number_));
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // and backoff
    stub_ = std::make_unique<Stub>(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), own));
    call_ = std::make_unique<Call>(*this);
    Call& call = *call_;
    v1::IngestRequest request;
    *request.mutable_hello() = hello_;
    call.request = Serialized(request);
    sent_ = 0;
    stub_->PrepareBidiStreamingCall(&call.context, "/lull.v1.Ingest/Stream", {}, &call);
    call.AddHold();
    call.writing = true;
    call.StartWrite(&call.request);
    call.StartRead(&call.reply);
    call.StartCall();
  }

  void Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (call_ == nullptr || call_->writing || !call_->open) return;
    if (sent_ >= std::min<uint64_t>(spool_.size(), kMaxUnacknowledged)) return;
    call_->request = recorded_.Batch(spool_[sent_++].sequence);
    call_->writing = true;
    call_->StartWrite(&call_->request);
  }

  void Acknowledge(uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Time now = absl::Now();
    while (!spool_.empty() && spool_.front().sequence <= sequence) {
      const Kept& kept = spool_.front();
      lags_.push_back(absl::ToDoubleMilliseconds(now - kept.recorded));
      acknowledged_ = kept.sequence;
      spool_bytes_ -= kept.bytes;
      spool_.pop_front();
      ++acknowledged_batches_;
      if (sent_ > 0) --sent_;
      backoff_ = kFirstBackoff;
    }
  }

  const std::string address_;
  const uint32_t number_;
  std::minstd_rand random_ ABSL_GUARDED_BY(mutex_);
  Recorded& recorded_;
  const v1::Hello hello_;
  std::unique_ptr<Stub> stub_;
  mutable Mutex mutex_;
  absl::Time next_due_ ABSL_GUARDED_BY(mutex_);
  absl::Time retry_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Duration backoff_ ABSL_GUARDED_BY(mutex_) = kFirstBackoff;
  std::deque<Kept> spool_ ABSL_GUARDED_BY(mutex_);
  uint64_t spool_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // of the spool, on this stream
  uint64_t recorded_batches_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lost_batches_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t acknowledged_batches_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t breaks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<double> lags_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Call> call_ ABSL_GUARDED_BY(mutex_);
};

double At(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  auto nth = values.begin() +
             static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

class Load {
 public:
  Load(const std::string& address, uint32_t relays, uint64_t ranks, double rate)
      : recorded_(ranks, rate) {
    for (uint32_t i = 0; i < relays; ++i) {
      relays_.push_back(
          std::make_unique<Relay>(address, i + 1, recorded_, kBatchAge * i / relays));
    }
  }

  void Run(absl::Duration duration) {
    const absl::Time start = absl::Now();
    absl::Time told = start;
    bool records = true;
    while (true) {
      const absl::Time now = absl::Now();
      records = now < start + duration;
      for (auto& relay : relays_) relay->Tick(now, records);
      if (now - told >= absl::Seconds(10)) {
        Tell(now - start, now - told, lags_);
        told = now;
      }
      if (!records && (now > start + duration + absl::Minutes(1) || Arrived())) {
        break;
      }
      absl::SleepFor(absl::Milliseconds(5));
    }
    Tell(absl::Now() - start, absl::Now() - told, lags_);
    before_ = 0;
    Tell(absl::Now() - start, absl::Now() - start, all_lags_);
    for (auto& relay : relays_) relay->Stop();
    for (auto& relay : relays_) {
      while (!relay->stopped()) absl::SleepFor(absl::Milliseconds(5));
    }
  }

 private:
  bool Arrived() const {
    return std::all_of(relays_.begin(), relays_.end(), [](const auto& relay) {
      Relay::Told told = relay->told();
      return told.acknowledged + told.lost == told.recorded;
    });
  }

  void Tell(absl::Duration at, absl::Duration span, std::vector<double>& lags) {
    uint64_t recorded = 0, lost = 0, acknowledged = 0, breaks = 0, connected = 0;
    uint64_t spool = 0, least = UINT64_MAX, most = 0, forget = UINT64_MAX;
    const bool all = &lags == &all_lags_;
    for (auto& relay : relays_) {
      Relay::Told told = relay->told();
      recorded += told.recorded;
      lost += told.lost;
      acknowledged += told.acknowledged;
      breaks += told.breaks;
      connected += told.connected ? 1 : 0;
      spool = std::max(spool, told.spool_bytes);
      least = std::min(least, told.acknowledged);
      most = std::max(most, told.acknowledged);
      forget = std::min(forget, relay->acknowledged());
      if (!all) relay->TakeLags(lags);
    }
    const double events = static_cast<double>(recorded_.events_per_batch());
    printf("{\"at_s\": %.0f, \"all\": %s, \"connected\": %" PRIu64
           ", \"breaks\": %" PRIu64
           ", \"recorded_events\": %.0f, \"acknowledged_events\": %.0f, "
           "\"lost_percent\": %.2f, \"events_per_second\": %.0f, "
           "\"lag_ms\": {\"p50\": %.0f, \"p99\": %.0f, \"max\": %.0f}, "
           "\"largest_spool_mib\": %.1f, \"batches_of_a_relay\": {\"least\": %" PRIu64
           ", \"most\": %" PRIu64 "}}\n",
           absl::ToDoubleSeconds(at), all ? "true" : "false", connected, breaks,
           static_cast<double>(recorded) * events,
           static_cast<double>(acknowledged) * events,
           recorded == 0
               ? 0
               : 100.0 * static_cast<double>(lost) / static_cast<double>(recorded),
           static_cast<double>(acknowledged - before_) * events /
               absl::ToDoubleSeconds(span),
           At(lags, 0.5), At(lags, 0.99), At(lags, 1),
           static_cast<double>(spool) / (1 << 20), least, most);
    fflush(stdout);
    before_ = acknowledged;
    if (all) return;
    all_lags_.insert(all_lags_.end(), lags.begin(), lags.end());
    lags.clear();
    recorded_.ForgetUpTo(forget);
  }

  Recorded recorded_;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::vector<double> lags_;
  std::vector<double> all_lags_;
  uint64_t before_ = 0;
};

}  // namespace
}  // namespace lull

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: fleet_load SOCKET RELAYS RANKS EVENTS_PER_RANK SECONDS\n");
    return 2;
  }
  lull::Load load(absl::StrCat("unix:", argv[1]),
                  static_cast<uint32_t>(strtoul(argv[2], nullptr, 10)),
                  strtoull(argv[3], nullptr, 10), strtod(argv[4], nullptr));
  load.Run(absl::Seconds(strtod(argv[5], nullptr)));
  return 0;
}
