// What reports must say, computed the slow and obvious way from a list of events.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "query.pb.h"
#include "tests/daemon/collector/test_job.h"

namespace lull::test {

struct ModelEvent {
  uint64_t process = 0;
  uint32_t ring = 0;
  TestEvent event;
};

struct ModelRow {
  uint64_t count = 0, total_ns = 0, max_ns = 0, amount = 0, amount2 = 0, frees = 0;
  int64_t live = 0, peak = 0;
  friend bool operator==(const ModelRow&, const ModelRow&) = default;
};
std::ostream& operator<<(std::ostream& out, const ModelRow& row);

// "label|file|line|function", or with the stack in place of the site -> row.
using ModelReport = std::map<std::string, ModelRow>;

struct ModelQuery {
  lull::v1::GroupBy by = lull::v1::GROUP_BY_LINE;
  uint64_t process = 0;  // 0 = all
  uint64_t since = 0;    // after the start of the job
  uint64_t until = UINT64_MAX;
};

ModelReport ModelSyncs(const std::vector<ModelEvent>& events, const ModelQuery& query);
ModelReport ModelGc(const std::vector<ModelEvent>& events, const ModelQuery& query);
ModelReport ModelWaits(const std::vector<ModelEvent>& events, const ModelQuery& query);
ModelReport ModelAllocations(const std::vector<ModelEvent>& events,
                             const ModelQuery& query);

// A reply in the same terms.
ModelReport FromReply(const lull::v1::Syncs& reply, lull::v1::GroupBy by);
ModelReport FromReply(const lull::v1::GcPauses& reply, lull::v1::GroupBy by);
ModelReport FromReply(const lull::v1::HostWaits& reply, lull::v1::GroupBy by);
ModelReport FromReply(const lull::v1::Allocations& reply, lull::v1::GroupBy by);

}  // namespace lull::test
