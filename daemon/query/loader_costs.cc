#include "daemon/query/loader_costs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/query/doing.h"
#include "daemon/query/hot.h"

namespace lull::query {
namespace {

uint64_t Scaled(uint64_t time_ns, double scale) {
  return static_cast<uint64_t>(static_cast<double>(time_ns) * scale);
}

}  // namespace

using aggregate::Sampled;

void LoaderCosts::Add(LoaderAt at, const Series& series, const Cell& cell) {
  const auto part = static_cast<size_t>(at.work);
  if (part >= kLoaderParts) return;
  const Sampled sampled = aggregate::SampledOf(cell);
  const bool cut = aggregate::QualityOf(series) == aggregate::SampleQuality::kCut;
  all_ += sampled;
  parts_[part] += sampled;
  const std::vector<uint32_t>& frames = stacks_.Frames(series.python_stack);
  const uint32_t user = stacks_.UserFrame(frames, at.below);
  if (user == 0) return;
  ++looks_;
  for (size_t i = 0; i < at.below; ++i) {
    if (frames[i] != user && !stacks_.IsWritten(frames[i], user)) continue;
    Line& line = lines_[KeyOf(frames[i])];
    if (std::exchange(line.seen_in, looks_) == looks_) continue;
    line.total += sampled;
    line.part_ns[part] += sampled.time_ns;
  }
  Line& own = lines_[KeyOf(user)];
  own.own += sampled;
  // If the stack is cut, the innermost frame that is known called something.
  const uint32_t callee = cut ? 0 : stacks_.CalleeOf(frames, user);
  if (callee != 0) own.callees[callee] += sampled;
}

void LoaderCosts::FillParts(
    double scale, google::protobuf::RepeatedPtrField<v1::LoaderPartRow>* out) const {
  for (size_t part = 0; part < kLoaderParts; ++part) {
    if (parts_[part].samples == 0) continue;
    v1::LoaderPartRow* row = out->Add();
    row->set_part(static_cast<v1::LoaderPart>(part));
    row->set_samples(parts_[part].samples);
    row->set_time_ns(Scaled(parts_[part].time_ns, scale));
    if (aggregate::IsEnough(all_)) {
      SetShare(parts_[part], all_, row->mutable_share());
    }
  }
  std::stable_sort(out->begin(), out->end(), [](const auto& a, const auto& b) {
    return a.time_ns() > b.time_ns();
  });
}

void LoaderCosts::FillLines(
    double scale, google::protobuf::RepeatedPtrField<v1::LoaderLine>* out) const {
  for (const auto& [frame, line] : lines_) {
    v1::LoaderLine* row = out->Add();
    row->set_role(role_);
    auto most = std::max_element(line.part_ns.begin(), line.part_ns.end());
    row->set_part(static_cast<v1::LoaderPart>(most - line.part_ns.begin()));
    stacks_.FillSite(frame, row->mutable_site());
    if (by_function_) row->mutable_site()->clear_line();
    row->set_samples(line.total.samples);
    row->set_own_samples(line.own.samples);
    row->set_total_ns(Scaled(line.total.time_ns, scale));
    row->set_own_ns(Scaled(line.own.time_ns, scale));
    if (uint32_t callee = MostOf(line.callees); callee != 0) {
      stacks_.FillSite(callee, row->mutable_callee());
    }
    if (!aggregate::IsEnough(all_)) continue;
    SetShare(line.total, all_, row->mutable_total());
    SetShare(line.own, all_, row->mutable_own());
  }
}

}  // namespace lull::query
