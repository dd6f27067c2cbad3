#include "daemon/aggregate/step_memory.h"

#include <algorithm>

namespace lull::aggregate {

void StepMemory::RestoreSamples(size_t count, uint64_t first_stride,
                                uint64_t last_ordinal) {
  if (count == 0) return;
  kept_ = count;
  stride_ = std::max<uint64_t>(first_stride, 1);
  next_ordinal_ = last_ordinal + 1;
}

void StepMemory::Change(uint64_t time_ns, uint32_t series, int64_t bytes) {
  if (held_.size() >= kMaxHeld) Advance(time_ns);
  held_.push_back({time_ns, series, bytes});
}

void StepMemory::EndStep(uint64_t number, uint64_t end_ns) {
  if (steps_.size() >= kMaxHeld) Advance(end_ns);
  steps_.push_back({number, end_ns});
}

void StepMemory::Advance(uint64_t as_of_ns) {
  // Nothing of what is due needs an order where no step has ended.
  auto due_steps = std::stable_partition(
      steps_.begin(), steps_.end(),
      [as_of_ns](const Step& step) { return step.end_ns < as_of_ns; });
  auto due = std::stable_partition(
      held_.begin(), held_.end(),
      [as_of_ns](const Held& held) { return held.time_ns < as_of_ns; });
  if (due_steps != steps_.begin()) {
    std::stable_sort(steps_.begin(), due_steps,
                     [](const Step& a, const Step& b) { return a.end_ns < b.end_ns; });
    std::stable_sort(held_.begin(), due, [](const Held& a, const Held& b) {
      return a.time_ns < b.time_ns;
    });
  }
  auto change = held_.begin();
  for (auto step = steps_.begin(); step != due_steps; ++step) {
    for (; change != due && change->time_ns <= step->end_ns; ++change) {
      live_[change->series] += change->bytes;
    }
    Take(*step);
  }
  for (; change != due; ++change) live_[change->series] += change->bytes;
  steps_.erase(steps_.begin(), due_steps);
  held_.erase(held_.begin(), due);
}

void StepMemory::Take(const Step& step) {
  const uint64_t ordinal = next_ordinal_++;
  if (ordinal % stride_ != 0) return;
  Sample sample{ordinal, step.number, step.end_ns, {live_.begin(), live_.end()}};
  std::sort(sample.live.begin(), sample.live.end());
  samples_.push_back(std::move(sample));
  if (++kept_ <= kMaxSamples) return;
  stride_ *= 2;
  kept_ = (kept_ + 1) / 2;
}

std::vector<StepMemory::Sample> StepMemory::TakeSamples() {
  std::vector<Sample> samples = std::move(samples_);
  samples_.clear();
  std::erase_if(samples,
                [this](const Sample& sample) { return sample.ordinal % stride_ != 0; });
  return samples;
}

}  // namespace lull::aggregate
