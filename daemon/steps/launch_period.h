// Finds steps in a program that marks none: training calls CUDA in the same order over
// and over. Fed with the calls of one thread, this finds the period of that order, and
// tells where each one begins.
//
// A period counts once it explains the newer half of all calls looked at, at least
// three repetitions, and does so again with twice as many calls: layers repeat within a
// step, but not for thousands of calls. A program that calls only one thing has no
// period. What breaks the order (a validation, a log line) costs the steps that it
// falls into: the next whole one is found again by its first calls.
//
// Not thread-safe. Memory: below 2 MiB, while it looks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lull::steps {

class LaunchPeriod {
 public:
  struct Found {
    uint64_t start_ns;
    uint64_t end_ns;
  };

  // A call of the thread, in the order of time. `key` tells what was called, equal
  // over all repetitions. Returns the period that ends with this call, as a step.
  std::optional<Found> Add(uint64_t key, uint64_t start_ns);

  // Calls in a period; 0: none has been found.
  size_t length() const { return pattern_.size(); }

 private:
  static constexpr size_t kFirstLook = 2048;
  static constexpr size_t kMostCalls = 1 << 16;
  static constexpr size_t kHead = 8;  // so many calls in a row tell where we are

  struct Call {
    uint64_t key;
    uint64_t start_ns;
  };

  void Look();
  size_t ShortestPeriod() const;
  size_t LongestPause(size_t period) const;
  bool FindHead();

  std::vector<Call> calls_;         // while searching; in step: of the step at hand
  size_t first_look_ = kFirstLook;  // doubled whenever what was found did not last
  size_t next_look_ = kFirstLook;
  size_t candidate_ = 0;  // found at the last look
  std::vector<uint64_t> pattern_;
  bool in_step_ = false;
  size_t lost_for_ = 0;  // calls since the order was broken
};

}  // namespace lull::steps
