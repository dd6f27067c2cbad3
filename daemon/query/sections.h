// The sections of a report, and what each is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/query/names.h"
#include "daemon/query/run_parts.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::query {

// What every section is made of.
struct View {
  lull::v1::ReportRequest request;
  bool overview = false;
  std::unique_ptr<storage::StoreReader> reader;
  std::unique_ptr<RunParts> run_parts;
  storage::JobRow job;
  TimeRange range;  // that is asked for
  lull::v1::Phase phase = lull::v1::PHASE_ALL;
  uint64_t setup_ns = 0;
  std::vector<ProcessSums> processes;  // each in the range, or of the phase
  std::unique_ptr<Names> names;
  std::unique_ptr<Stacks> stacks;
};

// The part of a process that is shown, if `steady` is when its steady state began.
TimeRange PhaseOf(const View& view, std::optional<uint64_t> steady);
// Processes that are shown because they work, and those that were sampled all the same:
// DataLoader workers record nothing. Their set-up is that of the job.
absl::StatusOr<std::vector<ProcessSums>> SampledProcesses(const View& view);

// The sections that are asked for; in an overview all of them.
absl::Status FillSections(View& view, lull::v1::ReportReply* reply);
// INVALID_ARGUMENT for one that is not known here.
absl::Status FillSection(int section, View& view, lull::v1::ReportReply* reply);

}  // namespace lull::query
