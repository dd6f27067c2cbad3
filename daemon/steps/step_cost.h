// What tracing costs the steps of a process on the wall clock, told from what happens
// anyway: some steps are traced, and their neighbours are not.
//
//   untraced  untraced | begins | traced  traced ... | ends | untraced  untraced
//                      ^ CUPTI is switched on        ^ ... and off, and flushed
//
// Each window is compared with its own neighbours, as many on either side, so that a
// training that gets slower or faster as it goes counts for neither. A window gives one
// value, its medians; the answer is the median of all windows, with the interval that
// their order alone gives (the sign test), which no outlier and no shape of their
// distribution spoils. Windows that follow one another are put together first where
// there are many of them, because they resemble each other. With fewer than
// kFewestWindows nothing is claimed.
//
// Where a job has control steps (preload/steps/control_step.h), each is compared in the
// same way with those beside it, which were recorded: that is what recording costs.
// Where many steps are control steps, a few of either kind that lie together give one
// value, because single ones would have the same neighbours.
//
// Pure: no clock, no store. Times are CLOCK_MONOTONIC in ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lull::steps {

struct TimedStep {
  uint64_t number = 0;  // steps follow each other where their numbers do
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t rested_ns = 0;  // of a control step: for how long hooks rested in it

  double length() const { return static_cast<double>(end_ns - start_ns); }
};

// From `time_ns` on. Warming up is tracing: it costs the same.
enum class TracingIs : uint8_t { kOff, kOn, kAnothers };
struct TracingChange {
  uint64_t time_ns = 0;
  TracingIs is = TracingIs::kOff;
};

enum class Condition : uint8_t {
  kUntraced,
  kBegins,    // tracing was switched on in it
  kTraced,    // on all the time
  kEnds,      // tracing was switched off in it, and perhaps on before
  kControl,   // nothing was recorded in it
  kAnothers,  // somebody else traced, or a control step was broken off: it says nothing
              // about us
};

bool InWindow(Condition condition);     // of tracing
bool IsNeighbour(Condition condition);  // of a window, recorded or not

// The condition of each step. Both arguments are in the order of time.
std::vector<Condition> ConditionsOf(const std::vector<TimedStep>& steps,
                                    const std::vector<TracingChange>& changes);

// A share, and where it lies in 95 of 100 cases.
struct Estimate {
  double share = 0;
  double low = 0;
  double high = 0;
};

struct StepCost {
  size_t windows = 0;  // that could be judged
  size_t traced_steps = 0;
  size_t untraced_steps = 0;
  // From the first control step on, or the first one of sampled steps.
  size_t rested_steps = 0;
  size_t recorded_steps = 0;  // all others
  // How much longer a step is while it is traced.
  std::optional<Estimate> traced_longer;
  // What windows added to the time of all these steps, with switching on and off.
  std::optional<Estimate> paid;
  // How much longer steps between windows are than those before the first one. The
  // training itself may have changed meanwhile; `paid` does not contain it.
  std::optional<Estimate> between_longer;
  size_t control_steps = 0;  // that could be judged, or that recorded ones were by
  // How much longer an untraced step is because it is recorded.
  std::optional<Estimate> recorded_longer;
  std::optional<Estimate> recording_paid;  // what that added to the time of all steps
};

// One window whose neighbours are known: steps [first, last) as they were handed over.
struct JudgedWindow {
  size_t first = 0;
  size_t last = 0;
  double longer = 0;    // its traced steps than its neighbours, as a share
  double added_ns = 0;  // by all of it: switching on, tracing, switching off
};

// How many neighbours count on either side of a window or a control step. More would
// tell more of one window, and of a training that changes. Control steps are passed
// over unless it is known what recording costs; kFarthest steps away is none.
inline constexpr size_t kReach = 8;
inline constexpr size_t kFarthest = 96;
inline constexpr size_t kFewestWindows = 6;
inline constexpr uint64_t kWarmUpSteps = 3;  // they set up more than they train

// What recording costs is told from the steps from number `sampled_from` on: those
// before may have been recorded with other detail.
StepCost CostOf(const std::vector<TimedStep>& steps,
                const std::vector<TracingChange>& changes, uint64_t sampled_from = 0);

// StepCost::recorded_longer.
std::optional<Estimate> RecordedLonger(const std::vector<TimedStep>& steps,
                                       const std::vector<Condition>& conditions);

// In order. A window without its beginning or its end, at the edge of what is known, or
// with too few neighbours is not among them. `recorded_longer`, where it is known:
// control steps are neighbours, too, and taken to be so much longer.
std::vector<JudgedWindow> JudgeWindows(
    const std::vector<TimedStep>& steps, const std::vector<Condition>& conditions,
    std::optional<double> recorded_longer = std::nullopt);

// Of values that resemble their neighbours, in order. Fewer than kFewestWindows: none.
std::optional<Estimate> MedianOf(const std::vector<double>& values);

// By how much the second is longer than the first: shift of one sample against the
// other (Hodges and Lehmann), in logarithms. nullopt where either is too small.
std::optional<Estimate> RatioOf(const std::vector<double>& first,
                                const std::vector<double>& second);

}  // namespace lull::steps
