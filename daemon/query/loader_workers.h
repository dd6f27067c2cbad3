// The workers of DataLoaders: how many there were, how many of them were busy, and how
// many would keep up with the training.
//
// Keeping up: workers that are busy for B ns while the training needs T ns for the same
// batches, without its waits for them, have B / T of them busy on average (Little's
// law); so many would be enough, at the price of a batch that was seen. What the share
// of busy samples leaves open is the interval. docs/host_samples.md
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "daemon/query/names.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// `processes`: those that train, and their workers. Sets workers, batches, lines and
// parts; FillData sets the rows of the loaders.
absl::Status FillLoading(storage::StoreReader& reader, const storage::JobRow& job,
                         const std::vector<ProcessSums>& processes,
                         const lull::v1::ReportRequest& request, Names& names,
                         Stacks& stacks, lull::v1::DataLoading* reply);

// "_MultiProcessingDataLoaderIter" of the scope that is its __next__.
std::string LoaderClass(const std::vector<std::string>& scope_path);

}  // namespace lull::query
