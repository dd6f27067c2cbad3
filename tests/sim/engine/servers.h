// A device resource with k equal servers (kernel slots, a copy engine): who gets
// it when. Pure arithmetic over times; the caller holds the engine's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lull::sim {

class Servers {
 public:
  explicit Servers(int64_t count)
      : servers_(static_cast<size_t>(count < 1 ? 1 : count)) {}

  // Takes one server for `duration` at the earliest instant >= `ready` at which
  // one is free for so long, and returns that instant. An operation that is
  // ready early fits before reservations made earlier for a later time, as on a
  // device that runs whatever is at the head of a queue. `now` only forgets the
  // past.
  int64_t reserve(int64_t ready, int64_t duration, int64_t now);

 private:
  struct Interval {
    int64_t start, end;
  };
  struct Server {
    std::vector<Interval> busy;  // sorted, disjoint

    void forget_before(int64_t now);
    int64_t earliest(int64_t ready, int64_t duration) const;
    void take(int64_t start, int64_t end);
  };

  std::vector<Server> servers_;
};

}  // namespace lull::sim
