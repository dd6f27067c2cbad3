// The rows of each section, from sums.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "daemon/aggregate/wait_kind.h"
#include "daemon/query/region_filter.h"
#include "daemon/query/sections.h"

namespace lull::query {

// The request decides on grouping and on the number of rows; totals are over all rows.
absl::Status FillSyncs(View& view, v1::ReportReply* reply);
absl::Status FillAllocations(View& view, v1::ReportReply* reply);
absl::Status FillGc(View& view, v1::ReportReply* reply);
// A data wait is often several waiting calls under one next(loader): `count` counts the
// calls. They follow each other, so that their total is the time that was waited.
absl::Status FillWaits(View& view, v1::ReportReply* reply);
// The same waits, added up by kind.
std::map<aggregate::WaitKind, Cell> WaitsByKind(
    const std::vector<ProcessSums>& processes);

// Idle time of the GPU: by cause, between which lines, and whose fault it was.
// Causes sum to the idle time of the range exactly; so do all rows. `count` counts
// parts of gaps that begin in the range, `max_ns` is the whole length of the longest
// part that lies in it, also where the range cuts it off. Samples of threads say what
// was done in a row; they never change its time.
absl::Status FillGaps(View& view, v1::ReportReply* reply);
// Its causes alone.
void FillCauses(const View& view, RegionFilter& filter, v1::Gaps* reply);

// Operators of PyTorch by what they made the GPU do, and by the tensors that they
// allocated (docs/operators.md): a row for each operator and pass. The native stack of
// a launch or an allocation names its operator; those without one are added up as
// unknown.
absl::Status FillOperators(View& view, v1::ReportReply* reply);

// Regions that the program named: how often, how long, what the GPU did meanwhile. A
// row for each name path. Parents before their children, of those side by side the ones
// with most time first. `top` keeps the rows with most time.
absl::Status FillRegions(View& view, v1::ReportReply* reply);

// Ranks that waited for each other, and for whom (docs/ranks.md).
// FAILED_PRECONDITION if nothing can be said of them, and why.
absl::Status FillRanks(View& view, v1::ReportReply* reply);
// Whether any process that is shown has waited for other ranks.
bool HasCollectives(const View& view);

// What each thread that is looked at did last, equal stacks together.
// FAILED_PRECONDITION if no thread of the processes that live was looked at lately.
absl::Status FillNewestStacks(View& view, v1::ReportReply* reply);

// Data loading: what a batch costs the training, by loader and line.
absl::Status FillData(View& view, v1::ReportReply* reply);

// The workers of DataLoaders: how many there were, how many of them were busy, and how
// many would keep up with the training. Sets workers, batches, lines and parts;
// FillData sets the rows of the loaders.
//
// Keeping up: workers that are busy for B ns while the training needs T ns for the same
// batches, without its waits for them, have B / T of them busy on average (Little's
// law); so many would be enough, at the price of a batch that was seen. What the share
// of busy samples leaves open is the interval. docs/host_samples.md
absl::Status FillLoading(View& view, v1::DataLoading* reply);

// What `lull memory` shows. For each process, allocator and device: what was live, what
// made up its peak, how it changed over steps, whether it grows, and what was reserved.
// In an overview totals alone: no points, and not what makes up the peaks. For the
// whole range with set-up, because peaks often lie there.
absl::Status FillMemory(View& view, v1::ReportReply* reply);

// Counts and bytes of all blocks that were told by drawing some of them: exact.
Cell SumOfSmall(const std::vector<ProcessSums>& processes);
// Free events that released nothing we knew.
uint64_t UnknownFrees(const std::vector<ProcessSums>& processes);
uint64_t CountLaunches(const std::vector<ProcessSums>& processes);

}  // namespace lull::query
