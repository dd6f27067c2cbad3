// The few lines of source text around each line that a stack names, read while the
// target runs, so that they are those that ran. They are read beside the caller, and
// come with a later batch.
//
// Python's files alone. A file that changed after the job began (after its process did,
// if that was before) gives no lines, and neither does one that the process's user
// could not read. Of one line of a job the first text counts, whichever process it came
// from. Bounded: kMaxExcerpts, and kMaxExcerptBytes of text in all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/source_reader.h"
#include "ingest.pb.h"

namespace lull::relay {

// All calls come from one thread.
class SourceExcerpts {
 public:
  static constexpr size_t kMaxExcerpts = 4096;
  static constexpr size_t kMaxExcerptBytes = 1 << 20;

  // `job_start_ns`: CLOCK_REALTIME; none for `lull attach`, whose processes began
  // before the job.
  explicit SourceExcerpts(std::optional<uint64_t> job_start_ns)
      : job_start_ns_(job_start_ns) {}

  // While the process is there: its files can be read until it is forgotten.
  void Watch(uint64_t key, pid_t pid);
  void Forget(uint64_t key) { processes_.erase(key); }

  // Asks for the lines around what the batch's stacks name, unless they were asked for
  // before, and adds what has been read. Waits for no file.
  void AddTo(lull::v1::Batch* batch);

  // The batch is in the spool; or it never will be, and the next one gets its lines.
  void Commit() { in_batch_.clear(); }
  void Drop();

  // Something will come yet, unless the file system hangs.
  bool pending() const { return reader_.reading(); }
  bool HasRead();  // there is something for a batch
  uint64_t CpuNs() const { return reader_.CpuNs(); }

 private:
  struct Process {
    pid_t pid = 0;
    MappedBy owner;
    std::shared_ptr<const UniqueFd> root;  // its root folder
    uint32_t number = 0;
    uint64_t not_after_ns = 0;
  };

  static void FollowRights(Process* process);
  void Ask(const Process& process, const lull::v1::Batch::Stacks& stacks);

  const std::optional<uint64_t> job_start_ns_;
  SourceReader reader_;
  std::map<uint64_t, Process> processes_;
  uint32_t numbers_ = 0;
  std::set<SourceLine> known_;                 // asked for
  std::vector<lull::v1::SourceDef> read_;      // and in no batch yet
  std::vector<lull::v1::SourceDef> in_batch_;  // in the one under way
  size_t bytes_ = 0;
};

}  // namespace lull::relay
