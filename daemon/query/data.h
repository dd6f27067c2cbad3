// Data loading: what a batch costs the training, by loader and line.
#pragma once

#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

void FillData(const std::vector<ProcessSums>& processes,
              const lull::v1::ReportRequest& request, Names& names,
              lull::v1::DataLoading* reply);

}  // namespace lull::query
