#include "daemon/collector/ingest/committer.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"

namespace lull::collector {
namespace {

constexpr absl::Duration kIdleTick = absl::Seconds(1);
constexpr absl::Duration kUnloadAfter = absl::Minutes(10);

// The relay waits for the acknowledgement of a job's end, and its user with it.
bool EndsJob(const v1::IngestRequest& request) { return request.batch().has_job_end(); }

// What the store says is our trouble, not the peer's: let it keep what it has, and try
// again later.
absl::Status AsRefusal(const absl::Status& status) {
  return absl::UnavailableError(
      absl::StrCat("the collector cannot store now: ", status.message()));
}

StoreClock ClockOf(storage::StoreReader& reader) {
  auto last = reader.catalogue().Clock();
  uint64_t newest = 0;
  std::vector<storage::JobRow> damaged;
  auto jobs = reader.catalogue().Jobs(0, &damaged);
  if (jobs.ok()) {
    for (const storage::JobRow& job : *jobs) newest = std::max(newest, job.touched_ns);
    for (const storage::JobRow& job : damaged)
      newest = std::max(newest, job.touched_ns);
  }
  return StoreClock(last.ok() ? *last : storage::ClockRow(), newest, HostClocks::Now());
}

}  // namespace

Committer::Committer(storage::Store& store, CommitterOptions options)
    : store_(store),
      options_(std::move(options)),
      retention_(store.writer(), options_.retention),
      clock_(ClockOf(store.writer())),
      thread_([this] { Run(); }) {}

Committer::~Committer() { Stop(); }

bool Committer::MayQueueMore(const CommitListener& stream) const {
  return queued_bytes_ < options_.max_queue_bytes &&
         stream.queued_bytes_ < options_.max_stream_bytes;
}

bool Committer::Submit(std::shared_ptr<CommitListener> stream, const std::string& job,
                       v1::IngestRequest request, size_t bytes) {
  MutexLock lock(mutex_);
  if (stopping_) return false;
  queued_bytes_ += bytes;
  stream->queued_bytes_ += bytes;
  queue_.push_back({stream, job, std::move(request), bytes, {}});
  arrived_.notify_one();
  if (MayQueueMore(*stream)) return true;
  waiting_.push_back(std::move(stream));
  return false;
}

absl::Status Committer::Write(
    absl::FunctionRef<absl::Status(storage::StoreWriter&)> write) {
  Order order{write, absl::OkStatus()};
  MutexLock lock(mutex_);
  if (stopping_) return absl::UnavailableError("the collector is ending");
  orders_.push_back(&order);
  arrived_.notify_one();
  carried_out_.wait(lock.native(), [&order] { return order.done; });
  return order.status;
}

void Committer::CarryOut(std::vector<Order*> orders) {
  storage::StoreWriter& writer = store_.writer();
  for (Order* order : orders) {
    absl::Status status = writer.Begin();
    if (status.ok()) status = order->write(writer);
    if (status.ok()) status = writer.Commit();
    if (!status.ok()) writer.Rollback();
    MutexLock lock(mutex_);
    order->status = std::move(status);
    order->done = true;
    carried_out_.notify_all();
  }
}

void Committer::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    arrived_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

uint64_t Committer::events_stored() const {
  MutexLock lock(mutex_);
  return events_stored_;
}

// Everything that is queued; waits up to `patience` for the first of it, or of orders.
std::vector<Committer::Item> Committer::Take(absl::Duration patience) {
  std::vector<Item> items;
  std::vector<std::shared_ptr<CommitListener>> resumed;
  {
    MutexLock lock(mutex_);
    arrived_.wait_for(lock.native(), absl::ToChronoNanoseconds(patience),
                      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                        return stopping_ || !queue_.empty() || !orders_.empty();
                      });
    size_t taken = 0;
    while (!queue_.empty() && taken < options_.max_commit_bytes) {
      taken += queue_.front().bytes;
      queue_.front().stream->queued_bytes_ -= queue_.front().bytes;
      items.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    queued_bytes_ -= taken;
    auto may = [this](const auto& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return MayQueueMore(*stream);
    };
    auto first =
        std::stable_partition(waiting_.begin(), waiting_.end(), std::not_fn(may));
    resumed.assign(std::make_move_iterator(first),
                   std::make_move_iterator(waiting_.end()));
    waiting_.erase(first, waiting_.end());
  }
  for (const auto& stream : resumed) stream->MayContinue();
  return items;
}

bool Committer::HasOnlyMoreItems() const {
  MutexLock lock(mutex_);
  return !queue_.empty() && orders_.empty();
}

void Committer::Run() {
  bool busy = false;
  while (true) {
    std::vector<Item> items = Take(busy ? absl::ZeroDuration() : kIdleTick);
    const bool idle = items.empty();
    if (!idle) CommitGroup(std::move(items));
    std::vector<Order*> orders;
    {
      MutexLock lock(mutex_);
      orders.swap(orders_);
      if (idle && orders.empty() && stopping_ && queue_.empty()) return;
    }
    CarryOut(std::move(orders));
    Unload();
    absl::StatusOr<bool> more = retention_.Step(
        absl::FromUnixNanos(static_cast<int64_t>(clock_.Advance(HostClocks::Now()))),
        [this](const std::string& uuid) { return InUse(uuid); });
    if (!more.ok()) LogError(absl::StrCat("retention: ", more.status().ToString()));
    busy = more.ok() && *more;
  }
}

bool Committer::InUse(const std::string& job) const {
  return jobs_.contains(job) ||
         (options_.has_relay != nullptr && options_.has_relay(job));
}

void Committer::CommitGroup(std::vector<Item> items) {
  const absl::Time begin = SteadyNow();
  std::vector<Item> good;
  size_t bytes = 0;
  bool hurry = false;
  while (true) {
    for (Item& item : items) {
      if (item.stream->failed_) continue;
      absl::Status status = Apply(item);
      if (!status.ok()) {
        Fail(*item.stream, status);
        continue;
      }
      hurry |= EndsJob(item.request);
      bytes += item.bytes;
      uint64_t sequence = item.request.batch().sequence();
      item.request = v1::IngestRequest();  // the memory goes back before the commit
      item.request.mutable_batch()->set_sequence(sequence);
      good.push_back(std::move(item));
    }
    if (hurry || bytes >= options_.max_commit_bytes) break;
    absl::Duration left = begin + options_.interval - SteadyNow();
    if (left <= absl::ZeroDuration() && HasOnlyMoreItems()) {
      left = begin + options_.busy_interval - SteadyNow();
    }
    if (left <= absl::ZeroDuration()) break;
    items = Take(left);
    MutexLock lock(mutex_);
    if (items.empty() && (stopping_ || !orders_.empty())) break;
  }
  Tell(good, FlushAll());
}

absl::Status Committer::Apply(Item& item) {
  auto it = jobs_.find(item.job);
  if (item.request.has_hello()) {
    if (it == jobs_.end()) {
      auto state = JobState::Load(store_.writer(), item.request.hello());
      if (!state.ok()) return AsRefusal(state.status());
      it = jobs_.try_emplace(item.job).first;
      it->second.state = *std::move(state);
    }
    it->second.state->Apply(item.request.hello());
  } else if (it == jobs_.end() && item.request.has_clock()) {
    return absl::OkStatus();  // it is over; one reading more or less is no loss
  } else if (it == jobs_.end()) {
    // The job was unloaded, after an error or for want of news: only a Hello says
    // enough to load it. UNAVAILABLE makes the relay connect again.
    return absl::UnavailableError("connect again");
  } else if (item.request.has_clock()) {
    it->second.state->Apply(item.request.clock());
  } else {
    item.rejected = it->second.state->Apply(item.request.batch());
    it->second.state->PackFullRuns(encoder_);
  }
  it->second.dirty = true;
  it->second.last_used = SteadyNow();
  return absl::OkStatus();
}

absl::Status Committer::FlushAll() {
  storage::StoreWriter& writer = store_.writer();
  const uint64_t now_ns = clock_.Advance(HostClocks::Now());
  absl::Status status = writer.Begin();
  for (auto& [uuid, job] : jobs_) {
    if (!status.ok()) break;
    if (job.dirty) status = job.state->Flush(writer, now_ns);
  }
  if (status.ok()) status = writer.catalogue().PutClock(clock_.row());
  if (status.ok()) status = writer.Commit();
  if (status.ok()) {
    retention_.HasRoom();
    uint64_t stored = 0;
    for (auto& [uuid, job] : jobs_) {
      job.dirty = false;
      stored += job.state->events_stored() - job.counted;
      job.counted = job.state->events_stored();
    }
    MutexLock lock(mutex_);
    events_stored_ += stored;
    return absl::OkStatus();
  }
  writer.Rollback();
  LogError(absl::StrCat("commit: ", status.ToString()));
  if (absl::IsResourceExhausted(status)) retention_.NeedRoom();
  // Memory is ahead of the store now.
  absl::erase_if(jobs_, [](const auto& entry) { return entry.second.dirty; });
  return AsRefusal(status);
}

void Committer::Fail(CommitListener& stream, const absl::Status& status) {
  if (std::exchange(stream.failed_, true)) return;
  stream.Failed(status);
}

void Committer::Tell(std::vector<Item>& items, const absl::Status& status) {
  for (Item& item : items) {
    if (!status.ok()) {
      Fail(*item.stream, status);
    } else if (item.request.batch().sequence() != 0) {
      if (!item.rejected.empty()) item.stream->Rejected(std::move(item.rejected));
      item.stream->Committed(item.request.batch().sequence());
    }
  }
}

void Committer::Unload() {
  absl::Time now = SteadyNow();
  absl::erase_if(jobs_, [&](const auto& entry) {
    const LoadedJob& job = entry.second;
    return job.state->ended() || now - job.last_used > kUnloadAfter;
  });
}

}  // namespace lull::collector
