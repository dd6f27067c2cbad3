// What threads did while the GPU waited for them: the samples that lie within the idle
// stretches of one row.
#pragma once

#include <cstdint>
#include <map>

#include "daemon/aggregate/host_sample.h"
#include "daemon/query/names.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// Lines of a row, where not all are asked for: those that matter are few.
inline constexpr size_t kMostDoing = 10;
// From fewer samples nobody can say where most of the time went.
inline constexpr uint64_t kSamplesOfASite = 5;

// The frame with most time; 0: there is none.
uint32_t MostOf(const std::map<uint32_t, aggregate::Sampled>& frames);

class Doing {
 public:
  // A series of samples in these gaps (kGapSample), its cell, and the gaps' own series.
  void Add(const Series& idle, const Series& series, const Cell& cell, Names& names);

  bool empty() const { return all_.samples == 0; }
  uint64_t samples() const { return all_.samples; }
  // The share of the samples' time that has a line: 0 to 1; 0 if there are no samples.
  double WithLine(Stacks& stacks) const;

  // Lines of the user's code, most time first, `most` of them at most, and the culprit
  // of the row, whose launches are filled in.
  void Fill(size_t most, Stacks& stacks, v1::GapRow* row) const;

 private:
  bool Fetches(Stacks& stacks) const;
  void FillBackward(size_t place, v1::GapRow* row) const;

  struct Seen {
    aggregate::Sampled whole;  // the stack is known to its end
    aggregate::Sampled cut;    // outer frames alone
  };

  aggregate::Sampled all_;
  // Samples of the engine of PyTorch's backward pass. They have no frames; the engine
  // was on its way to a launch that has the line of whoever called it.
  aggregate::Sampled backward_;
  std::map<uint32_t, Seen> stacks_;  // by stack
};

}  // namespace lull::query
