#include "daemon/relay/samples/allowance.h"

#include <algorithm>

namespace lull::relay {
namespace {

constexpr double kLeast = 0.01;
// Steps, so that the rate is not set anew with each look.
constexpr double kStep = 1.0 / 16;

}  // namespace

void Allowance::Update(uint64_t now_ns, uint64_t cpu_ns) {
  if (now_ns_ != 0 && now_ns > now_ns_) {
    left_ns_ += static_cast<double>(now_ns - now_ns_) * kSamplerShare;
  }
  if (cpu_ns > cpu_ns_) left_ns_ -= static_cast<double>(cpu_ns - cpu_ns_);
  now_ns_ = now_ns;
  cpu_ns_ = cpu_ns;
  left_ns_ = std::clamp<double>(left_ns_, 0, kSamplerCreditNs);
  double wanted = std::clamp(2 * left_ns_ / kSamplerCreditNs, kLeast, 1.0);
  bool settled = wanted == 1 || wanted == kLeast;
  if (!settled && wanted > factor_ - kStep && wanted < factor_ + kStep) return;
  if (factor_ == 1 && wanted < 1) ++lowered_;
  factor_ = wanted;
}

}  // namespace lull::relay
