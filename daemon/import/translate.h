// From the records of one process to events as a relay would have sent them: in the
// order of time, with definitions before what names them, and with a mark each second
// so that the collector can judge what lies behind.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/import/record.h"
#include "daemon/relay/read/batch_builder.h"
#include "ingest.pb.h"

namespace lull::imports {

// Names of the calls of all processes of a job.
class ApiTable {
 public:
  // Beyond the ids of the hooks and of CUPTI's calls.
  static constexpr uint16_t kFirst = 12288;
  static constexpr uint16_t kLast = 65535;

  // `fresh`: the collector has to be told of it.
  uint16_t IdOf(const std::string& name, bool* fresh);

 private:
  std::map<std::string, uint16_t> ids_;
};

// Where batches go.
using BatchSink = std::function<absl::Status(lull::v1::Batch* batch)>;

// What was found out about one process, for the report.
struct ImportCounts {
  std::map<std::string, uint64_t> found;    // what -> how many
  std::map<std::string, uint64_t> ignored;  // why -> how many
  std::map<std::string, bool> applied;  // a rule of blame -> the trace could feed it
  bool lines_of_functions = false;      // frames name the first line of functions
  uint64_t start_ns = 0, end_ns = 0;    // of all events
  uint64_t events = 0;                  // that were made
  // Of a memory snapshot.
  std::vector<lull::v1::SegmentUse> segments;
  std::vector<std::string> not_applied;  // sentences
};

// Sorts the records of `trace`. `key` is the process's in the job.
absl::Status Translate(Trace& trace, uint64_t key, ApiTable& apis,
                       const BatchSink& sink, ImportCounts* counts);

// Which rules of blame (docs/blame.md) a trace could not feed: sentences for people.
// `applied`: the keys "gc", "data", "host_wait", "allocator" of what was there.
std::vector<std::string> RulesNotApplied(const std::map<std::string, bool>& applied);

}  // namespace lull::imports
