// Workers of loaders over time, in stretches of one length.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/aggregate/host_sample.h"
#include "query.pb.h"

namespace lull::query {

// What was seen of the workers of one training process, and of its loaders.
struct WorkerTime {
  uint64_t life_ns = 0;      // of workers, added up
  aggregate::Sampled known;  // samples of their main threads with a stack
  aggregate::Sampled busy;   // of these
  uint64_t unknown_ns = 0;   // samples without
  uint64_t ready_ns = 0;     // of busy
  uint64_t calls = 0;        // of __next__ that began here
  uint64_t waited_ns = 0;    // in them

  WorkerTime& operator+=(const WorkerTime& other);
};

// Stretches of `length_ns` from `begin_ns` on, after the start of the job.
struct WorkerTimes {
  uint64_t begin_ns = 0;
  uint64_t length_ns = 0;
  std::map<uint64_t, std::vector<WorkerTime>> owners;  // by key
};

// Busy workers over time, their mean and 95th percentile. Stretches are put together
// until each has enough samples.
void FillOverTime(const WorkerTimes& times, lull::v1::LoaderWorkers* out);
// How many would be enough, or why that cannot be said.
void FillEnough(const WorkerTimes& times, lull::v1::LoaderWorkers* out);

}  // namespace lull::query
