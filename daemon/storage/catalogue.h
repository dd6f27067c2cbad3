// Everything about jobs except their events and cells: processes, rings, names, stacks,
// series, steps, as rows (rows.h). Not thread-safe.
//
// A row whose bytes are not what we wrote is DATA_LOSS.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/aggregate/live_blocks.h"
#include "daemon/base/status.h"
#include "daemon/storage/database.h"
#include "daemon/storage/rows.h"

namespace lull::storage {

inline constexpr uint64_t kMostSteps = 5'000;
// And so many of the first, which say when set-up was over, and how long steps were
// before the first window.
inline constexpr uint64_t kFirstSteps = 64;
// Changes of GPU tracing that are kept of a process, the first ones.
inline constexpr size_t kMostTracing = 10'000;

class Catalogue {
 public:
  explicit Catalogue(Database& db) : db_(db) {}

  // Newest first; jobs that are being deleted are left out. limit 0 = all.
  // A damaged row does not hide the others: it is left out and added to `damaged`,
  // with its id, its uuid and its numbers only.
  absl::StatusOr<std::vector<JobRow>> Jobs(
      uint32_t limit, std::vector<JobRow>* damaged = nullptr) const;
  // The jobs in whose id, name or command `text` is found, and perhaps others.
  absl::StatusOr<std::vector<JobRow>> JobsWith(const std::string& text,
                                               std::vector<JobRow>* damaged) const;
  // The job that began last, and all that something was stored of since it began.
  absl::StatusOr<std::vector<JobRow>> LatestJobs(std::vector<JobRow>* damaged) const;
  absl::StatusOr<std::vector<JobRow>> FindJob(const std::string& uuid) const;
  // In the order of their starts; those that are damaged are left out. None for "".
  absl::StatusOr<std::vector<JobRow>> JobsOfRun(const std::string& run) const;
  // In the order of their times, the newest `most` of them.
  absl::StatusOr<std::vector<ClockReadingRow>> ClockReadings(int64_t job,
                                                             uint64_t most) const;
  // What MarkForDeletion has hidden and is not deleted yet.
  absl::StatusOr<bool> IsBeingDeleted(const std::string& uuid) const;
  // All 0 in a store that never had one.
  absl::StatusOr<ClockRow> Clock() const;

  // R: a row of rows.h that belongs to a job or a process, `owner`. Rows come in the
  // order of their numbers, ids or times.
  template <typename R>
  absl::StatusOr<std::vector<R>> All(int64_t owner) const;
  // The one with this id, or an empty one where there is none.
  template <typename R>
  absl::StatusOr<R> Find(int64_t owner, uint32_t id) const;
  // The newest `limit` steps that end after `begin_ns` and start before `end_ns`, in
  // the order of time. limit 0 = all.
  absl::StatusOr<std::vector<StepRow>> Steps(int64_t process, uint64_t begin_ns,
                                             uint64_t end_ns, uint32_t limit) const;
  // The `limit` first that are kept, in the order of time.
  absl::StatusOr<std::vector<StepRow>> FirstSteps(int64_t process,
                                                  uint64_t limit) const;
  // The frames of a stack, innermost first; none where there is no such stack.
  absl::StatusOr<std::vector<aggregate::Frame>> StackFrames(int64_t job,
                                                            uint32_t stack) const;

  // A Put replaces the row with the same key: the uuid of a job; job and key of a
  // process; owner and number of any other row. PutJob and PutProcess fill `id`. What a
  // job is marked with stays as it is when it is put again.
  absl::Status PutJob(JobRow& row);
  absl::Status PutMarks(int64_t job, const lull::v1::JobMarks& marks);
  absl::Status PutProcess(ProcessRow& row);
  absl::Status PutClock(const ClockRow& row);
  template <typename R>
  absl::Status Put(int64_t owner, const R& row);
  // Puts all of them, and leaves `rows` empty.
  template <typename R>
  absl::Status PutAll(int64_t owner, std::vector<R>& rows) {
    for (const R& row : rows) LULL_RETURN_IF_ERROR(Put(owner, row));
    rows.clear();
    return absl::OkStatus();
  }

  // The newest kMostSteps of a process are kept, and the kFirstSteps first.
  absl::Status PutStep(int64_t process, const StepRow& row);
  // Keeps those whose ordinal is a multiple of `stride`.
  absl::Status ThinStepMemory(int64_t process, uint64_t stride);
  absl::Status DeleteLiveBlock(int64_t process, const aggregate::BlockKey& key);

  // Hides a job from readers.
  absl::Status MarkForDeletion(int64_t job);
  // A job that MarkForDeletion has hidden, and a process of a job; 0: there is none.
  absl::StatusOr<int64_t> JobToDelete() const;
  absl::StatusOr<int64_t> AnyProcess(int64_t job) const;
  // Deletes all of its rows, too. A job must have no process any more.
  absl::Status DeleteJob(int64_t job);
  absl::Status DeleteProcess(int64_t process);
  template <typename R>
  absl::Status DeleteAll(int64_t owner);

 private:
  Database& db_;
};

}  // namespace lull::storage
