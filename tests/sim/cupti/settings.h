// What the environment asks of the simulated CUPTI; docs/simulated_device.md lists it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lull::sim::cupti {

struct Failure {
  std::string function;
  int64_t call;  // counted from 1; 0: every call
  int result;
};

struct Settings {
  uint32_t version;
  std::vector<Failure> failures;
  int64_t garbage = 0;      // every n-th device record is nonsense; 0: none
  int64_t flush_ns = 0;     // what a flush takes, whatever there is
  int64_t device_room = 0;  // device records that wait at most; 0: no limit
  int64_t step_ns = 0;      // the wall clock is set by so much ...
  int64_t step_at_ns = 0;   // ... at this CLOCK_MONOTONIC; 0: never
};

// Read once. A value that is not understood ends the process with status 97.
const Settings& settings();

}  // namespace lull::sim::cupti
