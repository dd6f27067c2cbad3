// The rows of each report, from sums.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "daemon/query/names.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// `request` decides on grouping and on the number of rows; totals are over all rows.
void FillSyncs(const std::vector<ProcessSums>& processes,
               const v1::ReportRequest& request, Names& names, v1::Syncs* reply);
void FillAllocations(const std::vector<ProcessSums>& processes,
                     const v1::ReportRequest& request, Names& names,
                     v1::Allocations* reply);
void FillGc(const std::vector<ProcessSums>& processes, const v1::ReportRequest& request,
            Names& names, v1::GcPauses* reply);
// A data wait is often several waiting calls under one next(loader): `count` counts the
// calls. They follow each other, so that their total is the time that was waited.
void FillWaits(const std::vector<ProcessSums>& processes,
               const v1::ReportRequest& request, Names& names, Stacks& stacks,
               v1::HostWaits* reply);

// Idle time of the GPU: by cause, between which lines, and whose fault it was.
// Causes sum to the idle time of the range exactly; so do all rows. `count` counts
// parts of gaps that begin in the range, `max_ns` is the whole length of the longest
// part that lies in it, also where the range cuts it off. Samples of threads say what
// was done in a row; they never change its time.
void FillGaps(const std::vector<ProcessSums>& processes,
              const v1::ReportRequest& request, Names& names, Stacks& stacks,
              v1::Gaps* reply);

// Operators of PyTorch by what they made the GPU do, and by the tensors that they
// allocated (docs/operators.md): a row for each operator and pass. The native stack of
// a launch or an allocation names its operator; those without one are added up as
// unknown.
void FillOperators(const std::vector<ProcessSums>& processes,
                   const v1::ReportRequest& request, Names& names,
                   v1::Operators* reply);

// Regions that the program named: how often, how long, what the GPU did meanwhile. A
// row for each name path. Parents before their children, of those side by side the ones
// with most time first. `top` keeps the rows with most time.
void FillRegions(const std::vector<ProcessSums>& processes,
                 const v1::ReportRequest& request, Names& names, v1::Regions* reply);

// Data loading: what a batch costs the training, by loader and line.
void FillData(const std::vector<ProcessSums>& processes,
              const v1::ReportRequest& request, Names& names, v1::DataLoading* reply);

// The workers of DataLoaders: how many there were, how many of them were busy, and how
// many would keep up with the training. `processes`: those that train, and their
// workers. Sets workers, batches, lines and parts; FillData sets the rows of the
// loaders.
//
// Keeping up: workers that are busy for B ns while the training needs T ns for the same
// batches, without its waits for them, have B / T of them busy on average (Little's
// law); so many would be enough, at the price of a batch that was seen. What the share
// of busy samples leaves open is the interval. docs/host_samples.md
absl::Status FillLoading(storage::StoreReader& reader, const storage::JobRow& job,
                         const std::vector<ProcessSums>& processes,
                         const v1::ReportRequest& request, Names& names, Stacks& stacks,
                         v1::DataLoading* reply);

// What `lull memory` shows. For each process, allocator and device: what was live, what
// made up its peak, how it changed over steps, whether it grows, and what was reserved.
enum class MemoryDetail {
  kTotals,  // for a report: no points, and not what makes up the peaks
  kAll,
};
absl::Status FillMemory(storage::StoreReader& reader, const storage::JobRow& job,
                        const std::vector<ProcessSums>& processes,
                        const v1::ReportRequest& request, MemoryDetail detail,
                        Names& names, v1::Memory* reply);

uint64_t CountLaunches(const std::vector<ProcessSums>& processes);

}  // namespace lull::query
