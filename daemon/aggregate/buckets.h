// Time in buckets of several widths, so that any range is a few of them.
//
//   level 0   1 s         a range [since, until) of a job is
//   level 1   16 s          edge | whole buckets, as wide as fit | edge
//   level 2   256 s       where the edges, each shorter than 1 s, are summed up
//   level 3   4096 s      event by event.
//   level 4   65536 s
//
// One second, because the edges are what a query waits for: eight ranks with 20 000
// events a second each took 108 ms with buckets of ten seconds.
//
// Times are nanoseconds after the start of the job; what lies before it counts as
// its first instant. An event belongs to the bucket in which it starts.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lull::aggregate {

inline constexpr uint64_t kBucketNs = 1'000'000'000;
inline constexpr uint32_t kBucketLevels = 5;
inline constexpr uint32_t kBucketShift = 4;  // a level is 2^4 times the one below
inline constexpr uint64_t kForever = std::numeric_limits<uint64_t>::max();

inline uint64_t AfterStart(uint64_t time_ns, uint64_t job_start_ns) {
  return time_ns > job_start_ns ? time_ns - job_start_ns : 0;
}

// Whole buckets [first, end) of one level.
struct BucketRun {
  uint32_t level = 0;
  uint64_t first = 0;
  uint64_t end = 0;  // kForever: all that there are
  friend bool operator==(const BucketRun&, const BucketRun&) = default;
};

// [begin, end) to be summed up event by event; empty when begin == end.
struct Edge {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool empty() const { return begin == end; }
};

// In the order of time: head, then the runs, then tail.
struct Cover {
  Edge head;
  std::vector<BucketRun> runs;
  Edge tail;
};

// The parts of [since, until); until == kForever has no end and no tail.
Cover CoverRange(uint64_t since, uint64_t until);

}  // namespace lull::aggregate
