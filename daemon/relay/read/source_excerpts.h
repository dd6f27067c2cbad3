// The few lines of source text around each line that a stack names, read while the
// target runs, so that they are those that ran.
//
// Python's files alone. A file that changed after the job began (after its process did,
// if that was before) gives no lines, and neither does one that the process's user
// could not read. Of one line of a job the first text counts, whichever process it came
// from. Bounded: kMaxExcerpts, and kMaxExcerptBytes of text in all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/module_cache.h"
#include "ingest.pb.h"

namespace lull::relay {

// All calls come from one thread.
class SourceExcerpts {
 public:
  static constexpr size_t kMaxExcerpts = 4096;
  static constexpr size_t kMaxExcerptBytes = 1 << 20;

  // `job_start_ns`: CLOCK_REALTIME; none for `lull attach`, whose processes began
  // before the job. `modules` must outlive this.
  SourceExcerpts(ModuleCache* modules, std::optional<uint64_t> job_start_ns)
      : modules_(modules), job_start_ns_(job_start_ns) {}

  // While the process is there: its files can be read until it is forgotten.
  void Watch(uint64_t key, pid_t pid);
  void Forget(uint64_t key) { processes_.erase(key); }

  // Adds the lines around what the batch's stacks name, unless they were added before.
  void AddTo(lull::v1::Batch* batch);

  // The batch is in the spool; or it never will be, and its stacks come again.
  void Commit() { fresh_.clear(); }
  void Drop();

 private:
  using Line = std::pair<std::string, uint32_t>;  // file, line
  struct Process {
    MappedBy owner;
    UniqueFd root;  // its root folder
    uint32_t number = 0;
    uint64_t not_after_ns = 0;
  };

  std::vector<Line> NewLines(const lull::v1::Batch::Stacks& stacks);
  void Ask(const Process& process, const Line* lines, size_t count,
           lull::v1::Batch* batch);

  ModuleCache* const modules_;
  const std::optional<uint64_t> job_start_ns_;
  std::map<uint64_t, Process> processes_;
  uint32_t numbers_ = 0;
  absl::flat_hash_set<Line> known_;  // asked for, answered or not
  std::vector<Line> fresh_;          // of them, in the batch under way
  size_t bytes_ = 0;
  bool given_up_ = false;  // a reader did not answer
};

}  // namespace lull::relay
