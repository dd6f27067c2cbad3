// A job and its ranks in sums over all of their time, without lines and names: what the
// report verbs say with `--rank R --phase all`. For who asks again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/aggregate/cell.h"
#include "daemon/aggregate/wait_kind.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::query {

// Steps of all of a rank's time, control steps too; FillSteps knows the newest alone.
struct StepTotals {
  uint64_t count = 0;  // that have ended
  // Where the program marks steps. The first one of a process counts and has no time:
  // its begin is not known.
  bool timed = false;
  uint64_t total_ns = 0;
};

struct RankTotals {
  int32_t rank = -1;  // -1: of processes that have none
  // Processes, launches, gpu (without its spans), causes of gaps, memory, devices and
  // overhead; nothing else is set.
  v1::ReportReply reply;
  std::map<aggregate::WaitKind, aggregate::Cell> waits;
  StepTotals steps;
  // Of each of reply.processes: the devices of which it has traced time. (Not to be
  // told by pid: a program that became another one is two processes of one pid.)
  std::vector<uint32_t> traced_devices;
  // And how long it had recorded before GPUs were first traced: its set-up.
  std::vector<uint64_t> before_tracing_ns;
};

struct RunTotals {
  v1::Job job;
  v1::Losses losses;      // of all processes
  v1::Overhead overhead;  // what is of the whole job: the relay's time, the budget
  std::vector<RankTotals> ranks;  // in the order of ranks
  size_t ranks_left_out = 0;
};

// `id`: the whole id of a job. At most `most_ranks`, the lowest: of the others nothing
// is read. Processes are those that a report shows. NOT_FOUND: no such job.
absl::StatusOr<RunTotals> TotalsOfRun(storage::Store& store, const HasRelay& has_relay,
                                      const std::string& id, size_t most_ranks);

}  // namespace lull::query
