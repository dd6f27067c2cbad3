#include "daemon/query/timeline_gaps.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "daemon/query/rows.h"

namespace lull::query {
namespace {

// What makes two gaps one kind: cause, call, lines and stacks; ids of the job.
using KindKey = std::array<uint32_t, 7>;

KindKey KindKeyOf(const Series& s) {
  return {aggregate::CauseOf(s), s.api,       s.before_line, s.after_line,
          s.python_stack,        s.line_site, s.native_stack};
}

struct Kind {
  const Series* what = nullptr;
  uint64_t count = 0, total_ns = 0, max_ns = 0;

  void Add(uint64_t times, uint64_t ns, uint64_t longest_ns) {
    count += times;
    total_ns += ns;
    max_ns = std::max(max_ns, longest_ns);
  }
};

void FillCounts(const Kind& kind, uint32_t cause, v1::GapRow* row) {
  row->set_cause(static_cast<v1::GapCause>(cause));
  row->set_count(kind.count);
  row->set_total_ns(kind.total_ns);
  row->set_max_ns(kind.max_ns);
}

void FillLines(const Series& s, Names& names, v1::GapRow* row) {
  names.FillSite(s.before_line, row->mutable_before());
  names.FillSite(s.after_line, row->mutable_after());
  names.FillSite(s.line_site, row->mutable_culprit());
  row->set_culprit_api(names.Api(s.api));
  names.FillStack(s.python_stack, row->mutable_stack());
  names.FillStack(s.native_stack, row->mutable_native_stack());
}

}  // namespace

void TimelineGaps::Add(size_t band, const ProcessSums& process, const Event& idle,
                       uint64_t start_ns) {
  if (open_.size() <= band) open_.resize(band + 1);
  Gap& open = open_[band];
  const uint64_t begin = aggregate::AfterStart(idle.start_ns, start_ns);
  const bool goes_on = (idle.flags & aggregate::kFlagContinued) != 0 &&
                       open.process == &process && open.series == idle.series &&
                       open.start_ns + open.duration_ns == begin;
  if (goes_on) {
    open.duration_ns += idle.duration_ns;
    return;
  }
  if (open.process != nullptr) Keep(open);
  open = {begin, idle.duration_ns, static_cast<uint32_t>(band), idle.series, &process};
}

void TimelineGaps::Keep(const Gap& gap) {
  gaps_.push_back(gap);
  if (gaps_.size() >= 2 * most_ + 1024) Prune();
}

void TimelineGaps::Prune() {
  if (gaps_.size() <= most_) return;
  const auto end = gaps_.begin() + static_cast<ptrdiff_t>(most_);
  std::nth_element(gaps_.begin(), end, gaps_.end(), [](const Gap& a, const Gap& b) {
    return std::pair(b.duration_ns, a.start_ns) < std::pair(a.duration_ns, b.start_ns);
  });
  for (auto gap = end; gap != gaps_.end(); ++gap) {
    ++left_out_;
    left_out_ns_ += gap->duration_ns;
    longest_left_out_ns_ = std::max(longest_left_out_ns_, gap->duration_ns);
  }
  gaps_.erase(end, gaps_.end());
}

// The number of each gap's kind. Beyond the bound there is one kind of each cause,
// without lines.
std::vector<uint32_t> TimelineGaps::FillKinds(Names& names, v1::Timeline* reply) const {
  std::map<KindKey, Kind> kinds;
  for (const Gap& gap : gaps_) {
    Kind& kind = kinds[KindKeyOf(gap.what())];
    kind.what = &gap.what();
    kind.Add(1, gap.duration_ns, gap.duration_ns);
  }
  auto time = [](const Kind& kind) { return kind.total_ns; };
  std::map<KindKey, uint32_t> numbers;
  std::map<uint32_t, Kind> others;  // by cause
  for (const auto* entry : Highest(kinds, 0, time)) {
    const auto& [key, kind] = *entry;
    const uint32_t cause = aggregate::CauseOf(*kind.what);
    if (numbers.size() >= kinds_) {
      others[cause].Add(kind.count, kind.total_ns, kind.max_ns);
      continue;
    }
    numbers[key] = static_cast<uint32_t>(numbers.size());
    v1::GapRow* row = reply->add_kinds();
    FillCounts(kind, cause, row);
    FillLines(*kind.what, names, row);
  }
  std::map<uint32_t, uint32_t> number_of_others;
  for (const auto& [cause, kind] : others) {
    number_of_others[cause] = static_cast<uint32_t>(reply->kinds_size());
    FillCounts(kind, cause, reply->add_kinds());
  }
  std::vector<uint32_t> of_gaps;
  for (const Gap& gap : gaps_) {
    auto it = numbers.find(KindKeyOf(gap.what()));
    of_gaps.push_back(it != numbers.end()
                          ? it->second
                          : number_of_others[aggregate::CauseOf(gap.what())]);
  }
  return of_gaps;
}

void TimelineGaps::Fill(Names& names, v1::Timeline* reply) {
  for (const Gap& gap : open_) {
    if (gap.process != nullptr) Keep(gap);
  }
  open_.clear();
  Prune();
  std::sort(gaps_.begin(), gaps_.end(), [](const Gap& a, const Gap& b) {
    return std::pair(a.band, a.start_ns) < std::pair(b.band, b.start_ns);
  });
  const std::vector<uint32_t> kinds = FillKinds(names, reply);
  for (size_t i = 0; i < gaps_.size(); ++i) {
    auto* band = reply->mutable_bands(static_cast<int>(gaps_[i].band));
    band->add_gap_start_ns(gaps_[i].start_ns);
    band->add_gap_duration_ns(gaps_[i].duration_ns);
    band->add_gap_kind(kinds[i]);
  }
  reply->set_gaps(gaps_.size());
  reply->set_left_out(left_out_);
  reply->set_left_out_ns(left_out_ns_);
  reply->set_longest_left_out_ns(longest_left_out_ns_);
}

}  // namespace lull::query
