// Keeps the cost of our hooks inside one target within the budget: looks at the
// time that the target spent in them, once a second, and takes detail away step by
// step while it is too much. Pure: time comes from the caller.
//
//   over budget in one window                  -> one step more thinning
//   under half of it for kCalmWindows windows  -> one step less
#pragma once

#include <cstdint>

namespace lull::relay {

class Governor {
 public:
  static constexpr uint64_t kWindowNs = 1'000'000'000;
  static constexpr int kCalmWindows = 5;

  // budget_percent <= 0: never thins.
  explicit Governor(double budget_percent) : budget_percent_(budget_percent) {}

  // self_ns: all the time spent in hooks so far (a total). Returns the level of
  // abi::Thinning to set; looks only once a window has passed.
  uint32_t Update(uint64_t now_ns, uint64_t self_ns);

  uint32_t highest() const { return highest_; }

 private:
  double budget_percent_;
  uint64_t window_start_ns_ = 0;
  uint64_t window_self_ns_ = 0;
  uint32_t level_ = 0;
  uint32_t highest_ = 0;
  int calm_ = 0;
};

}  // namespace lull::relay
