#include "daemon/query/doing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/query/hot.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

using aggregate::Sampled;
using aggregate::SampleQuality;
using aggregate::SampleRole;

struct Line {
  Sampled own;    // it is the user's line of the sample
  Sampled share;  // it is in the stack
  Sampled self;   // it is innermost
  std::map<uint32_t, Sampled> callees;
  uint64_t seen_in = 0;  // the stack that counted it last
};

// The engine's threads do nothing but backward work: one that is not waiting for more
// of it, and launches next for some caller, is at work for that caller.
bool IsOfTheEngine(const Series& sample, const Series& idle, Names& names) {
  const SampleRole role = aggregate::RoleOf(sample);
  if (role != SampleRole::kAutograd && role != SampleRole::kFeeder) return false;
  v1::Site next;
  names.FillSite(idle.after_line, &next);
  return next.has_backward_of() || next.has_forward_site();
}

}  // namespace

uint32_t MostOf(const std::map<uint32_t, Sampled>& frames) {
  uint32_t most = 0;
  uint64_t time_ns = 0;
  for (const auto& [frame, sampled] : frames) {
    if (sampled.time_ns <= time_ns) continue;
    most = frame;
    time_ns = sampled.time_ns;
  }
  return most;
}

void Doing::Add(const Series& idle, const Series& series, const Cell& cell,
                Names& names) {
  const Sampled sampled = aggregate::SampledOf(cell);
  const SampleQuality quality = aggregate::QualityOf(series);
  all_ += sampled;
  if (series.python_stack == 0 && IsOfTheEngine(series, idle, names)) {
    backward_ += sampled;
    return;
  }
  if (!aggregate::HasStack(quality) || series.python_stack == 0) return;
  Seen& seen = stacks_[series.python_stack];
  (quality == SampleQuality::kCut ? seen.cut : seen.whole) += sampled;
}

double Doing::WithLine(Stacks& stacks) const {
  if (all_.time_ns == 0) return 0;
  uint64_t with_line = backward_.time_ns;
  for (const auto& [stack, seen] : stacks_) {
    // An imported trace may know operators alone.
    const std::vector<uint32_t>& frames = stacks.Frames(stack);
    if (frames.empty() || stacks.Frame(stacks.UserFrame(frames)).line <= 0) continue;
    with_line += seen.whole.time_ns + seen.cut.time_ns;
  }
  return static_cast<double>(with_line) / static_cast<double>(all_.time_ns);
}

bool Doing::Fetches(Stacks& stacks) const {
  return std::any_of(stacks_.begin(), stacks_.end(), [&](const auto& item) {
    return stacks.BelowFetch(stacks.Frames(item.first)) != 0;
  });
}

// The line is the caller's, and what it does the node that launches next.
void Doing::FillBackward(size_t place, v1::GapRow* row) const {
  v1::DoingLine* out = row->add_doing();
  *out->mutable_site() = row->after();
  out->set_samples(backward_.samples);
  if (aggregate::IsEnough(all_)) {
    for (auto* share :
         {out->mutable_share(), out->mutable_self(), out->mutable_own()}) {
      SetShare(backward_, all_, share);
    }
  }
  for (int i = row->doing_size() - 1; i > static_cast<int>(place); --i) {
    row->mutable_doing()->SwapElements(i, i - 1);
  }
}

void Doing::Fill(size_t most, Stacks& stacks, v1::GapRow* row) const {
  // Who waits for workers does nothing. The site of data is where the training asked
  // for it, also where it is the training's own thread that loads.
  const bool data = row->cause() == v1::GAP_CAUSE_DATA_WAIT;
  if (data && !Fetches(stacks)) return;
  row->set_samples(all_.samples);
  std::map<uint32_t, Line> lines;
  for (const auto& [stack, seen] : stacks_) {
    const std::vector<uint32_t>& frames = stacks.Frames(stack);
    if (frames.empty()) continue;
    const uint32_t user = stacks.UserFrame(frames);
    Line& line = lines[user];
    line.own += seen.whole;
    line.own += seen.cut;
    // If the stack is cut, the innermost frame that is known called something.
    if (frames.front() == user) {
      line.self += seen.whole;
    } else if (seen.whole.samples > 0) {
      line.callees[stacks.CalleeOf(frames, user)] += seen.whole;
    }
  }
  uint64_t looks = 0;
  for (const auto& [stack, seen] : stacks_) {
    ++looks;
    for (uint32_t frame : stacks.Frames(stack)) {
      auto it = lines.find(frame);
      if (it == lines.end() || std::exchange(it->second.seen_in, looks) == looks) {
        continue;
      }
      it->second.share += seen.whole;
      it->second.share += seen.cut;
    }
  }
  size_t before_backward = 0;
  auto own_time = [](const Line& line) { return line.own.time_ns; };
  for (const auto* entry : Highest(lines, most, own_time)) {
    const Line& line = entry->second;
    before_backward += line.own.time_ns >= backward_.time_ns;
    v1::DoingLine* out = row->add_doing();
    stacks.FillSite(entry->first, out->mutable_site());
    out->set_samples(line.own.samples);
    if (uint32_t callee = MostOf(line.callees); callee != 0) {
      stacks.FillSite(callee, out->mutable_callee());
    }
    if (!aggregate::IsEnough(all_)) continue;
    SetShare(line.share, all_, out->mutable_share());
    SetShare(line.self, all_, out->mutable_self());
    SetShare(line.own, all_, out->mutable_own());
  }
  if (backward_.samples > 0 && !data) FillBackward(before_backward, row);
  if (!data && row->doing_size() > 0 && aggregate::IsEnough(all_, kSamplesOfASite)) {
    *row->mutable_culprit() = row->doing(0).site();
  }
}

}  // namespace lull::query
