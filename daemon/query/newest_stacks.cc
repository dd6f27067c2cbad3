#include <algorithm>
#include <compare>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/query/last_step.h"
#include "daemon/query/part_clocks.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

using aggregate::SampleQuality;
using aggregate::SampleRole;
using aggregate::SampleState;

// A thread is looked at ten times a second, and a hundred processes that share a
// relay's time still once in some seconds.
constexpr uint64_t kWindowNs = 30'000'000'000;
constexpr uint64_t kShortestWindowNs = 1'000'000'000;
// So many events are read for one answer, at 0.16 us each; of more the window is
// shorter.
constexpr double kMostEventsOfLooks = 2'000'000;

// Where a thread was.
struct Place {
  uint8_t role = 0;
  uint32_t stack = 0;  // 0: none that is known
  bool cut = false;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Looks {
  Place place;
  SampleState state = SampleState::kRunning;
  uint64_t first_ns = 0;  // of those in a row that found it there
  uint64_t last_ns = 0;
  uint32_t count = 0;
};

class Newest {
 public:
  Newest(View& view, v1::NewestStacks* reply) : view_(view), reply_(*reply) {}

  absl::Status Fill() {
    LULL_RETURN_IF_ERROR(FindProcesses());
    LULL_RETURN_IF_ERROR(ChooseWindow());
    for (const storage::ProcessRow& process : processes_) {
      LULL_RETURN_IF_ERROR(Read(process));
    }
    if (places_.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "no thread was looked at in the last ", window_ns_ / 1'000'000'000,
          " s of what is shown; `lull hot` says whether any was"));
    }
    LULL_RETURN_IF_ERROR(FindSteps());
    if (!view_.job.ended) LULL_RETURN_IF_ERROR(TellAge());
    Tell();
    return view_.stacks->status();
  }

 private:
  // Those that live; of a job of which none does, all of them.
  absl::Status FindProcesses() {
    LULL_ASSIGN_OR_RETURN(
        auto rows, view_.reader->catalogue().All<storage::ProcessRow>(view_.job.id));
    const bool one_lives =
        std::any_of(rows.begin(), rows.end(),
                    [](const storage::ProcessRow& row) { return row.end_ns == 0; });
    for (storage::ProcessRow& row : rows) {
      if (one_lives && row.end_ns != 0 && view_.range.all()) continue;
      if (row.counters.host_samples().taken() == 0) continue;
      if (Fits(row, view_.request)) processes_.push_back(std::move(row));
    }
    return absl::OkStatus();
  }

  absl::Status ChooseWindow() {
    const uint64_t newest =
        aggregate::AfterStart(view_.job.last_event_ns, view_.job.info.start_ns()) + 1;
    is_earlier_ = view_.range.until < newest;
    at_ns_ = std::min(view_.range.until, newest);
    for (window_ns_ = kWindowNs; window_ns_ > kShortestWindowNs; window_ns_ /= 2) {
      double events = 0;
      for (const storage::ProcessRow& process : processes_) {
        LULL_ASSIGN_OR_RETURN(double some,
                              view_.reader->events().Estimate(
                                  process.id, Absolute(view_.job, Since()), Until()));
        events += some;
      }
      if (events <= kMostEventsOfLooks) break;
    }
    window_ns_ = std::max(window_ns_, kShortestWindowNs);
    return absl::OkStatus();
  }

  uint64_t Since() const {
    return std::max(view_.range.since, at_ns_ - std::min(at_ns_, window_ns_));
  }
  uint64_t Until() const { return Absolute(view_.job, at_ns_); }

  absl::Status Read(const storage::ProcessRow& process) {
    LULL_ASSIGN_OR_RETURN(
        auto rows, view_.reader->catalogue().All<storage::SeriesRow>(process.id));
    absl::flat_hash_map<uint32_t, Series> series;  // of looks, by id
    for (const storage::SeriesRow& row : rows) {
      if (row.series.type == EventType::kHostSample) series[row.id] = row.series;
    }
    std::map<uint32_t, Looks> threads;  // by tid
    LULL_RETURN_IF_ERROR(view_.reader->events().Read(
        process.id, Absolute(view_.job, Since()), Until(), [&](const Event& event) {
          const auto found = series.find(event.series);
          if (found != series.end()) Add(found->second, event, threads[event.tid]);
        }));
    if (!threads.empty()) ++seen_processes_;
    for (const auto& [tid, looks] : threads) {
      if (view_.request.has_role() && looks.place.role != view_.request.role())
        continue;
      v1::StackThread thread;
      thread.set_rank(process.info.rank());
      thread.set_pid(process.info.pid());
      thread.set_tid(tid);
      thread.set_state(static_cast<v1::HostSampleState>(looks.state));
      thread.set_age_ns(Until() - std::min(Until(), looks.last_ns));
      thread.set_same_for_ns(looks.last_ns - looks.first_ns);
      thread.set_looks(looks.count);
      places_[looks.place].push_back(std::move(thread));
    }
    return absl::OkStatus();
  }

  // Looks at a thread come in the order of time. One that failed says nothing of where
  // the thread is, unless there is no other.
  static void Add(const Series& series, const Event& event, Looks& looks) {
    const SampleQuality quality = aggregate::QualityOf(series);
    Place place;
    place.role = static_cast<uint8_t>(aggregate::RoleOf(series));
    if (aggregate::HasStack(quality)) {
      place.stack = series.python_stack;
      place.cut = quality == SampleQuality::kCut;
    }
    if (quality == SampleQuality::kFailed && looks.count > 0) return;
    if (looks.count == 0 || place != looks.place) {
      looks = {place, SampleState::kRunning, event.start_ns, 0, 0};
    }
    looks.state = aggregate::StateOf(series);
    looks.last_ns = event.start_ns + event.duration_ns;
    ++looks.count;
  }

  absl::Status FindSteps() {
    LULL_ASSIGN_OR_RETURN(const Recorded recorded,
                          Recorded::Load(*view_.reader, view_.job));
    LULL_ASSIGN_OR_RETURN(const auto last,
                          FindLastStep(*view_.reader, recorded, processes_, Until()));
    if (!last) return absl::OkStatus();
    reply_.set_since_step_ns(last->since_ns);
    reply_.set_step_ns(last->step_ns);
    return absl::OkStatus();
  }

  // By the dates of both hosts where nobody has compared their clocks.
  absl::Status TellAge() {
    LULL_ASSIGN_OR_RETURN(const auto now_ns, HostTimeNow(*view_.reader, view_.job));
    const uint64_t is_ns = now_ns.value_or(RealtimeNs());
    const uint64_t was_ns =
        now_ns ? Until() : view_.job.info.start_realtime_ns() + at_ns_;
    if (is_ns > was_ns) reply_.set_behind_ns(is_ns - was_ns);
    return absl::OkStatus();
  }

  void Tell() {
    reply_.set_at_ns(at_ns_);
    reply_.set_earlier(is_earlier_);
    reply_.set_window_ns(at_ns_ - Since());
    reply_.set_processes(seen_processes_);
    auto threads = [](const std::vector<v1::StackThread>& all) { return all.size(); };
    for (const auto* entry : Highest(places_, view_.request.top(), threads)) {
      const auto& [place, all] = *entry;
      v1::ThreadStack* out = reply_.add_stacks();
      out->set_role(static_cast<v1::HostSampleRole>(place.role));
      out->set_cut(place.cut);
      const std::vector<uint32_t>& frames = view_.stacks->Frames(place.stack);
      if (!frames.empty()) {
        view_.stacks->FillSite(view_.stacks->UserFrame(frames), out->mutable_site());
        view_.stacks->FillStack(place.stack, out->mutable_stack());
      }
      for (const v1::StackThread& thread : all) *out->add_threads() = thread;
      std::stable_sort(
          out->mutable_threads()->begin(), out->mutable_threads()->end(),
          [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
    }
  }

  View& view_;
  v1::NewestStacks& reply_;
  std::vector<storage::ProcessRow> processes_;
  uint64_t at_ns_ = 0;
  bool is_earlier_ = false;
  uint64_t window_ns_ = 0;
  uint32_t seen_processes_ = 0;
  std::map<Place, std::vector<v1::StackThread>> places_;
};

}  // namespace

absl::Status FillNewestStacks(View& view, v1::ReportReply* reply) {
  v1::NewestStacks told;
  LULL_RETURN_IF_ERROR(Newest(view, &told).Fill());
  *reply->mutable_stacks() = std::move(told);
  return absl::OkStatus();
}

}  // namespace lull::query
