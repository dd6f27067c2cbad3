#include "daemon/query/step_bands.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "daemon/base/median.h"
#include "daemon/base/status.h"
#include "daemon/query/rows.h"
#include "daemon/query/steps.h"

namespace lull::query {
namespace {

using v1::StepRow;

constexpr size_t kMostStepPoints = 8'000;  // of all processes
constexpr size_t kLeastStepPoints = 100;   // of each
constexpr int kMostOutliers = 20;
// Fewer have no median to stand out from.
constexpr size_t kEnoughForMedian = 10;
// Both: noise of a steady job stays under the first, a job whose steps differ as a rule
// under the second (in units of a normal distribution's deviation).
constexpr double kLeastTimes = 1.2;
constexpr double kLeastDeviations = 5;
constexpr double kMadToDeviation = 1.4826;

struct StepPart {
  const char* name;
  uint64_t (StepRow::*get)() const;
};
constexpr StepPart kStepParts[] = {
    {"kernel", &StepRow::kernel_ns},   {"memcpy", &StepRow::memcpy_ns},
    {"memset", &StepRow::memset_ns},   {"communication", &StepRow::communication_ns},
    {"runtime", &StepRow::runtime_ns}, {"data", &StepRow::data_ns},
    {"host", &StepRow::host_ns},       {"other", &StepRow::other_ns},
};

template <typename Rows, typename Get>
std::vector<double> Values(const Rows& rows, Get get) {
  std::vector<double> values;
  for (const StepRow* row : rows) values.push_back(static_cast<double>(get(*row)));
  return values;
}

// Which part of the step exceeds the median of its like most. Parts of the device are
// known of traced steps alone, so these are compared among themselves.
void NamePart(const std::vector<const StepRow*>& steps, const StepRow& step,
              v1::StepOutlier* out) {
  std::vector<const StepRow*> alike;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(alike),
               [&](const StepRow* row) { return row->traced() == step.traced(); });
  if (alike.size() < kEnoughForMedian) return;
  double most = 0;
  for (const StepPart& part : kStepParts) {
    const double median = LowerMedian(
        Values(alike, [&](const StepRow& row) { return (row.*part.get)(); }));
    const double excess = static_cast<double>((step.*part.get)()) - median;
    if (excess <= most) continue;
    most = excess;
    out->set_part(part.name);
    out->set_excess_ns(static_cast<uint64_t>(excess));
  }
}

void AddOutliers(const std::vector<const StepRow*>& steps, v1::Timeline* reply) {
  if (steps.size() < kEnoughForMedian) return;
  const std::vector<double> times =
      Values(steps, [](const StepRow& row) { return row.duration_ns(); });
  const double median = LowerMedian(times);
  std::vector<double> away;
  for (double time : times) away.push_back(std::abs(time - median));
  const double deviation = kMadToDeviation * LowerMedian(std::move(away));
  const double bound =
      std::max(kLeastTimes * median, median + kLeastDeviations * deviation);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (median <= 0 || times[i] <= bound) continue;
    reply->set_outliers_in_all(reply->outliers_in_all() + 1);
    auto* out = reply->add_outliers();
    *out->mutable_step() = *steps[i];
    out->set_times_median(times[i] / median);
    NamePart(steps, *steps[i], out);
  }
}

void AddPoint(const StepRow& step, v1::StepBand* band) {
  band->add_number(step.number());
  band->add_start_ns(step.start_ns());
  band->add_duration_ns(step.duration_ns());
}

}  // namespace

void AddSteps(const std::vector<StepRow>& steps, size_t most, v1::Timeline* reply) {
  std::vector<const StepRow*> timed;  // nobody knows when the first began
  for (const StepRow& step : steps) {
    if (step.duration_ns() > 0) timed.push_back(&step);
  }
  if (timed.empty()) return;
  auto* band = reply->add_steps();
  band->set_pid(timed[0]->pid());
  band->set_rank(timed[0]->rank());
  band->set_count(timed.size());
  auto shorter = [](const StepRow* a, const StepRow* b) {
    return a->duration_ns() < b->duration_ns();
  };
  const size_t group = timed.size() <= most
                           ? 1
                           : (2 * timed.size() + most - 1) / std::max<size_t>(1, most);
  for (size_t i = 0; i < timed.size(); i += group) {
    const auto begin = timed.begin() + static_cast<ptrdiff_t>(i);
    const auto end =
        timed.begin() + static_cast<ptrdiff_t>(std::min(timed.size(), i + group));
    auto [shortest, longest] = std::minmax_element(begin, end, shorter);
    if (shortest > longest) std::swap(shortest, longest);
    AddPoint(**shortest, band);
    if (shortest != longest) AddPoint(**longest, band);
  }
  AddOutliers(timed, reply);
}

absl::Status FillStepBands(const View& view, v1::Timeline* reply) {
  const size_t most = std::max(
      kLeastStepPoints, kMostStepPoints / std::max<size_t>(1, view.processes.size()));
  for (const ProcessSums& sums : view.processes) {
    LULL_ASSIGN_OR_RETURN(auto stored, StepsOf(view, sums));
    std::vector<StepRow> rows(stored.size());
    for (size_t i = 0; i < stored.size(); ++i) {
      FillStepRow(view.job, sums.process, stored[i], &rows[i]);
    }
    AddSteps(rows, most, reply);
  }
  std::stable_sort(reply->mutable_outliers()->begin(), reply->mutable_outliers()->end(),
                   [](const auto& a, const auto& b) {
                     return a.step().duration_ns() > b.step().duration_ns();
                   });
  Cut(kMostOutliers, reply->mutable_outliers());
  return absl::OkStatus();
}

}  // namespace lull::query
