// What differs between two sides, by sync point, cause, kernel, wait, function and
// allocator. "Per step" means: of one process, in a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "query.pb.h"

namespace lull::compare {

// The means of both sides, and where each has two runs the 95 % interval of b - a.
struct Quantity {
  double a = 0;
  double b = 0;
  std::optional<double> low;
  std::optional<double> high;
};

// A sync point of one side; of no calls if it is not there.
struct SyncRate {
  v1::Site site;
  std::string api;
  double calls_per_step = 0;
  uint64_t calls = 0;  // in the steps of all runs
  double blocked_ms_per_step = 0;
  std::optional<double> wasted_ms_per_step;  // absent without GPU truth
};
struct SyncChange {
  SyncRate a;
  SyncRate b;
  bool moved = false;  // to another file
  // Its line reads otherwise where it stands: edited, or replaced by one like it.
  bool edited = false;
};
struct SyncChanges {
  std::vector<SyncChange> gone;     // a alone is set
  std::vector<SyncChange> came;     // b alone is set
  std::vector<SyncChange> changed;  // other calls per step
  std::vector<SyncChange> moved;    // as many calls, in another file
  std::vector<SyncChange> same;
  // On one side alone, but in too few steps to say that the other does not do it.
  std::vector<SyncChange> rare;
};

struct CauseChange {
  v1::GapCause cause = v1::GAP_CAUSE_UNKNOWN;
  Quantity ms;
};
struct KernelChange {
  std::string name;
  Quantity ms;
  Quantity calls;
};
struct HostChange {  // what the host waited for: "data", "gil", "gc", "sync"
  std::string what;
  Quantity ms;
};
struct FunctionChange {  // own time of main threads, by samples
  v1::Site site;         // its line of most time
  Quantity ms;
};
struct MemoryChange {
  std::string allocator;
  Quantity peak_bytes;      // of the process that has most, whole run
  Quantity reserved_bytes;  // 0: not known
};

// What a process of B does by itself, against all of A: a mean over processes hides one
// that differs.
struct OfProcess {
  int32_t rank = -1;
  uint32_t pid = 0;                 // in the first run
  std::vector<double> gpu_step_ms;  // by run, as in RunFacts
  double step_ms = 0;               // as StepTime.b_ms, of this process; 0: not timed
  SyncChanges syncs;
  std::vector<CauseChange> causes;
  std::vector<HostChange> host;
};

}  // namespace lull::compare
