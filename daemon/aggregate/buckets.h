// Time in buckets of several widths, so that any range is a few of them.
//
//   level 0   10 s        a range [since, until) of a job is
//   level 1   160 s         edge | whole buckets, as wide as fit | edge
//   level 2   2560 s      where the edges, each shorter than 10 s, are summed up
//   level 3   40960 s     event by event.
//
// Times are nanoseconds after the start of the job; what lies before it counts as
// its first instant. An event belongs to the bucket in which it starts.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lull::aggregate {

inline constexpr uint64_t kBucketNs = 10'000'000'000;
inline constexpr uint32_t kBucketLevels = 4;
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
