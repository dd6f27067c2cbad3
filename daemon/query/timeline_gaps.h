// The longest idle stretches of a job, one by one, with what they were due to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/aggregate/event.h"
#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

class TimelineGaps {
 public:
  // Keeps `most` gaps, and lines and stacks of `kinds` of them.
  TimelineGaps(size_t most, size_t kinds) : most_(most), kinds_(kinds) {}

  // Stretches of one band, in the order of time. What goes on in the next bucket is one
  // gap; `start_ns` is of the job.
  void Add(size_t band, const ProcessSums& process, const Event& idle,
           uint64_t start_ns);
  // To be called once, when all are added. `reply` has its bands.
  void Fill(Names& names, v1::Timeline* reply);

 private:
  struct Gap {
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
    uint32_t band = 0;
    uint32_t series = 0;
    const ProcessSums* process = nullptr;

    const Series& what() const { return process->series[series]; }
  };

  void Keep(const Gap& gap);
  void Prune();
  std::vector<uint32_t> FillKinds(Names& names, v1::Timeline* reply) const;

  const size_t most_, kinds_;
  std::vector<Gap> gaps_;
  std::vector<Gap> open_;  // by band: may go on
  uint64_t left_out_ = 0, left_out_ns_ = 0, longest_left_out_ns_ = 0;
};

}  // namespace lull::query
