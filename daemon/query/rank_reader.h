// A rank as the rules for late ones want it, read from its stored events
// (docs/ranks.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "daemon/aggregate/series.h"
#include "daemon/query/device_rank.h"
#include "daemon/query/late_causes.h"
#include "daemon/query/names.h"
#include "daemon/ranks/ranks.h"
#include "daemon/storage/store.h"

namespace lull::query {

struct RankOf {
  size_t part = 0;
  storage::ProcessRow process;
  std::vector<aggregate::Series> series;  // by id
  std::vector<uint64_t> step_ns;
  bool on_device = false;  // it has kernels of NCCL
  DeviceRank device;
};

// Of the clock of the rank's part.
struct RankSpan {
  uint64_t since_ns = 0;
  uint64_t until_ns = 0;
};

// A kernel that communicates.
bool IsCommunicating(const aggregate::Series& series, Names& names);

class RankReader {
 public:
  RankReader(storage::StoreReader& reader, LateCauses& causes)
      : reader_(reader), causes_(causes) {}

  // Steps and looks; of one on a device `rank.device`, and what it waited for and spent
  // is still to be filled in (device_waits.h).
  absl::Status Read(const RankSpan& span, bool on_device, RankPart& part, RankOf& rank,
                    ranks::Rank& out) {
    return on_device ? ReadDevice(span, part, rank, out)
                     : ReadHost(span, part, rank, out);
  }

 private:
  absl::Status ReadHost(const RankSpan& span, RankPart& part, RankOf& rank,
                        ranks::Rank& out);
  absl::Status ReadDevice(const RankSpan& span, RankPart& part, RankOf& rank,
                          ranks::Rank& out);
  void AddWait(RankPart& part, const aggregate::Series& series,
               const aggregate::Event& event, ranks::Rank& out);
  void AddLook(RankPart& part, const aggregate::Series& series,
               const aggregate::Event& event, ranks::Rank& out);

  storage::StoreReader& reader_;
  LateCauses& causes_;
};

}  // namespace lull::query
