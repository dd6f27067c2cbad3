#include "daemon/steps/launch_period.h"

#include <algorithm>

namespace lull::steps {
namespace {

constexpr size_t kPatience = 1000;  // calls, beside four periods

// z[i]: how many items from i on equal those from the start on (Gusfield, Algorithms on
// Strings, 1.3). Linear.
template <typename Items>
std::vector<size_t> ZValues(const Items& items, size_t count) {
  std::vector<size_t> z(count, 0);
  size_t left = 0, right = 0;
  for (size_t i = 1; i < count; ++i) {
    if (i < right) z[i] = std::min(right - i, z[i - left]);
    while (i + z[i] < count && items(z[i]) == items(i + z[i])) ++z[i];
    if (i + z[i] > right) {
      left = i;
      right = i + z[i];
    }
  }
  return z;
}

}  // namespace

size_t LaunchPeriod::ShortestPeriod() const {
  const size_t count = calls_.size();
  auto backwards = [&](size_t i) { return calls_[count - 1 - i].key; };
  std::vector<size_t> z = ZValues(backwards, count);
  for (size_t period = 1; period <= count / 4; ++period) {
    if (z[period] >= std::max(2 * period, count / 2 - period)) return period;
  }
  return 0;
}

// The call that begins a period is the one after the longest pause: where the host
// fetches data, or waits. Of the newest two periods, so that one hiccup does not
// decide.
size_t LaunchPeriod::LongestPause(size_t period) const {
  const size_t first = calls_.size() - period;
  size_t best = first;
  uint64_t longest = 0;
  for (size_t i = first; i < calls_.size(); ++i) {
    uint64_t pause =
        std::min(calls_[i].start_ns - calls_[i - 1].start_ns,
                 calls_[i - period].start_ns - calls_[i - period - 1].start_ns);
    if (pause > longest) {
      longest = pause;
      best = i;
    }
  }
  return best;
}

void LaunchPeriod::Look() {
  size_t period = ShortestPeriod();
  bool confirmed = period > 1 && period == candidate_;  // 1: one call over and over
  candidate_ = period;
  if (!confirmed) {
    if (calls_.size() >= kMostCalls) {
      calls_.erase(calls_.begin(), calls_.begin() + kMostCalls / 2);
    }
    next_look_ = std::min(kMostCalls, calls_.size() * 2);
    return;
  }
  size_t begin = LongestPause(period);
  pattern_.clear();
  for (size_t i = 0; i < period; ++i) {
    size_t at = begin + i < calls_.size() ? begin + i : begin + i - period;
    pattern_.push_back(calls_[at].key);
  }
  calls_.erase(calls_.begin(), calls_.begin() + static_cast<ptrdiff_t>(begin));
  in_step_ = true;
}

// Out of step: the newest calls are the head of the pattern, or not.
bool LaunchPeriod::FindHead() {
  const size_t head = std::min(kHead, pattern_.size());
  if (calls_.size() > head) {
    calls_.erase(calls_.begin(), calls_.end() - static_cast<ptrdiff_t>(head));
  }
  if (calls_.size() < head) return false;
  return std::equal(calls_.begin(), calls_.end(), pattern_.begin(),
                    [](const Call& call, uint64_t key) { return call.key == key; });
}

std::optional<LaunchPeriod::Found> LaunchPeriod::Add(uint64_t key, uint64_t start_ns) {
  calls_.push_back({key, start_ns});
  if (pattern_.empty()) {
    if (calls_.size() >= next_look_) Look();
    return std::nullopt;
  }
  if (!in_step_) {
    in_step_ = FindHead();
    if (in_step_) {
      lost_for_ = 0;
    } else if (++lost_for_ > 4 * pattern_.size() + kPatience) {
      pattern_.clear();  // the program does something else now
      calls_.clear();
      candidate_ = 0;
      lost_for_ = 0;
      first_look_ = std::min(first_look_ * 2, kMostCalls / 2);
      next_look_ = first_look_;
    }
    return std::nullopt;
  }
  // The call that begins the next period ends this one.
  const size_t at = calls_.size() - 1;
  if (key != pattern_[at % pattern_.size()]) {
    in_step_ = false;
    return std::nullopt;
  }
  if (at < pattern_.size()) return std::nullopt;
  Found found{calls_.front().start_ns, start_ns};
  calls_.assign(1, {key, start_ns});
  return found;
}

}  // namespace lull::steps
