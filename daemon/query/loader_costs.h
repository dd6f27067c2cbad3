// What loading costs, by samples of the threads that do it: by part and by line.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "daemon/aggregate/host_sample.h"
#include "daemon/query/loader_part.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

class LoaderCosts {
 public:
  LoaderCosts(v1::HostSampleRole role, bool by_function, Stacks& stacks)
      : role_(role), by_function_(by_function), stacks_(stacks) {}

  // Adds samples of one stack, unless it does not load, or waits.
  void Add(LoaderAt at, const Series& series, const Cell& cell);

  uint64_t time_ns() const { return all_.time_ns; }
  // `scale`: times of samples are multiplied with it, so that their sum is the time
  // that is known exactly. Rows with most time come first; lines are in no order.
  void FillParts(double scale,
                 google::protobuf::RepeatedPtrField<v1::LoaderPartRow>* out) const;
  void FillLines(double scale,
                 google::protobuf::RepeatedPtrField<v1::LoaderLine>* out) const;

 private:
  struct Line {
    aggregate::Sampled total;
    aggregate::Sampled own;
    std::array<uint64_t, kLoaderParts> part_ns = {};  // of total
    std::map<uint32_t, aggregate::Sampled> callees;
    uint64_t seen_in = 0;  // the stack that counted it last
  };

  uint32_t KeyOf(uint32_t frame) {
    return by_function_ ? stacks_.Function(frame) : frame;
  }

  const v1::HostSampleRole role_;
  const bool by_function_;
  Stacks& stacks_;
  aggregate::Sampled all_;
  std::array<aggregate::Sampled, kLoaderParts> parts_;
  std::map<uint32_t, Line> lines_;
  uint64_t looks_ = 0;
};

}  // namespace lull::query
