// What the sampler may use of a processor. Allowance flows in with time and out with
// the time that looks took; while more than half of it is left, looks come at their
// full rate, below that in proportion. So in the long run the sampler uses what flows
// in, and the rate never swings. Pure: times come from the caller.
#pragma once

#include <cstdint>

#include "daemon/relay/samples/rates.h"

namespace lull::relay {

class Allowance {
 public:
  // `cpu_ns`: processor time of the sampler so far.
  void Update(uint64_t now_ns, uint64_t cpu_ns);
  // What rates are to be multiplied with: (0, 1].
  double factor() const { return factor_; }
  // Times that the factor fell below 1.
  uint64_t lowered() const { return lowered_; }

 private:
  double left_ns_ = kSamplerCreditNs;
  uint64_t now_ns_ = 0;
  uint64_t cpu_ns_ = 0;
  double factor_ = 1;
  uint64_t lowered_ = 0;
};

}  // namespace lull::relay
