// When to look: the due times of a Poisson process of a rate that may change. Gaps are
// exponential, so that no rhythm of the program can be in step with them; they follow
// from the last due time and not from when the look was done, so that the work of
// looking does not stretch them. Pure: time comes from the caller.
#pragma once

#include <cstdint>
#include <random>

namespace lull::relay {

class PoissonClock {
 public:
  explicit PoissonClock(uint64_t seed) : random_(seed) {}

  // Looks per second from `now_ns` on; 0: none. What was due later than `now_ns` is
  // drawn anew, which changes nothing: such a process has no memory.
  void SetRate(double per_second, uint64_t now_ns);
  double rate() const { return rate_; }

  // When the next look is due; UINT64_MAX: never.
  uint64_t due_ns() const { return due_ns_; }
  // The look is taken, or left out.
  void Next();

  // In [0, 1).
  double Uniform() { return std::generate_canonical<double, 53>(random_); }

 private:
  uint64_t Gap();

  std::mt19937_64 random_;
  double rate_ = 0;
  uint64_t due_ns_ = UINT64_MAX;
};

}  // namespace lull::relay
