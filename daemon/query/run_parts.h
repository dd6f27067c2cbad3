// The jobs that are parts of one: what several `lull run` recorded of a run on several
// hosts, or of several ranks on one. What one relay told stays a job of its own in the
// store, with its own clock (docs/decisions/parts_of_a_run.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"

namespace lull::query {

// A job whose ranks told the same run id as those of others.
struct PartLife {
  uint64_t start_ns = 0;  // CLOCK_REALTIME
  uint64_t end_ns = 0;    // as far as is known; UINT64_MAX: it goes on
  std::string user;
  std::map<int32_t, int32_t> ranks;  // with the size of their world
};

// For each part the number of the whole that it belongs to, from 0 on. Parts come in
// the order of their starts. Two are of one whole only if they lived at one time, are
// one user's, have ranks, none in common, and agree on how many there are: a rank that
// comes again is another attempt or another job, whatever their run is called.
// `whole_or_none`: nobody named the run (kMasterRun), so that only ranks that are all
// of them, each once, are one.
std::vector<size_t> Wholes(const std::vector<PartLife>& parts,
                           bool whole_or_none = false);

// Whether, for each part, `wholes`, which Wholes() made of them, is one of several ways
// to put its whole together: jobs of one name went on at one time, and nothing says
// which host was whose.
std::vector<bool> Doubts(const std::vector<PartLife>& parts,
                         const std::vector<size_t>& wholes);

// Which jobs of a store are parts of one. Each run is looked at once, so it is for one
// answer. Not thread-safe.
class RunParts {
 public:
  // `reader` must outlive it.
  RunParts(storage::StoreReader& reader, HasRelay has_relay);
  ~RunParts();

  // All parts of what `job` is a part of, in the order of their starts, itself
  // included; itself alone where nothing says which they are.
  absl::StatusOr<std::vector<storage::JobRow>> Of(const storage::JobRow& job);
  // There may be others, but nothing says which.
  absl::StatusOr<bool> IsInDoubt(const storage::JobRow& job);
  // The part of `job`'s whole that has the rank; itself where it has it, or none does.
  absl::StatusOr<storage::JobRow> WithRank(const storage::JobRow& job, int32_t rank);

  storage::StoreReader& reader() const { return reader_; }
  bool HasRelayOf(const storage::JobRow& job) const {
    return has_relay_(job.info.id());
  }

 private:
  struct Member;
  struct Run;
  absl::StatusOr<const Run*> Load(const std::string& run);
  absl::StatusOr<const Member*> Find(const storage::JobRow& job, const Run** run);
  absl::StatusOr<PartLife> LifeOf(const storage::JobRow& job) const;

  storage::StoreReader& reader_;
  const HasRelay has_relay_;
  std::map<std::string, std::unique_ptr<Run>> runs_;
};

}  // namespace lull::query
