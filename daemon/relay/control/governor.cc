#include "daemon/relay/control/governor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "preload/abi/segment.h"

namespace lull::relay {
namespace {

// The part of the credit that hooks over the budget do not use; the first window of a
// watch may take as much.
constexpr double kKeptForTracing = 2.0 / 3;
// What tracing takes beside hooks, at least, where it makes them record more. The end
// of each step takes a little for it in any process (preload/cupti/tracer.cc).
constexpr double kTracedPart = 0.05;
// Of the trainer of tests/bench/trainer_cost.py hooks took 3.6 % of a watch with all
// detail, and 2.5 % with the least.
constexpr double kFarOver = 2;

// A counter that runs backwards is no cost.
double Growth(uint64_t now, uint64_t before) {
  return now > before ? static_cast<double>(now - before) : 0;
}

}  // namespace

void Governor::BeginWatch() {
  attached_ = true;
  least_.Forget();
  first_steps_ = {};
  window_ended_ = false;
  last_ns_ = 0;
  look_ = traced_look_ = {};
}

bool Governor::IsSpent() const {
  if (hooks_balance_ns_ >= 0) return false;
  return early_ ? least_.IsEarlyOver() : least_.IsOver(budget_ * hooks_part_);
}

double Governor::FarOver() const {
  const double share = early_ ? first_steps_.share() : 0;
  return share > kFarOver * budget_ * hooks_part_ ? share : 0;
}

void Governor::ForgiveHooks(uint64_t worth_ns) {
  const double worth = budget_ * static_cast<double>(worth_ns);
  hooks_balance_ns_ = std::max(hooks_balance_ns_, hooks_part_ * worth);
}

Governor::Verdict Governor::Update(uint64_t now_ns, uint64_t hooks_ns,
                                   uint64_t gpu_ns) {
  if (budget_ <= 0) return verdict_;
  const double credit = budget_ * static_cast<double>(kCreditNs);
  if (last_ns_ == 0) {
    early_ = attached_;
    early_until_ns_ = now_ns + kEarlyNs;
    const double cold = budget_ * static_cast<double>(kColdNs);
    balance_ns_ = attached_ ? 0 : credit;
    hooks_balance_ns_ = hooks_part_ * (attached_ ? cold : credit);
    detail_balance_ns_ = hooks_balance_ns_;
  } else {
    const HooksLook look = {now_ns - last_ns_, Growth(hooks_ns, last_hooks_ns_)};
    const double gpu = Growth(gpu_ns, last_gpu_ns_);
    const HooksLook no_steps = AddLook(look, gpu);
    Pay(look.ns, look.hooks_ns, gpu);
    PayHooks(-static_cast<double>(no_steps.ns), -no_steps.hooks_ns);
  }
  last_ns_ = now_ns;
  last_hooks_ns_ = hooks_ns;
  last_gpu_ns_ = gpu_ns;
  was_traced_ = traced_;
  const uint64_t length = early_ ? kEarlyWindowNs : kWindowNs;
  if (traced_look_.ns >= std::max(length, least_.step_ns())) {
    if (traced_look_.share() < budget_ / 2) look_.Add(traced_look_);
    traced_look_ = {};
  }
  // At the least detail a whole step at least: that its wait is calm gives no detail
  // back.
  const bool least = verdict_.thinning == abi::kThinLaunches;
  const uint64_t look_length = std::max(length, least ? least_.step_ns() : 0);
  if (look_.ns >= look_length) JudgeHooks(std::exchange(look_, {}));
  if (early_ && now_ns >= early_until_ns_) {
    early_ = false;
    least_.Forget();  // those were no whole seconds
    ForgiveHooks(kEarlyNs);
    detail_balance_ns_ = hooks_balance_ns_;
  }
  return verdict_;
}

HooksLook Governor::AddLook(const HooksLook& look, double gpu_ns) {
  const bool least = verdict_.thinning == abi::kThinLaunches && !keep_detail_;
  const bool traced = traced_ || was_traced_ || gpu_ns > look.hooks_ns * kTracedPart;
  (least && traced ? traced_look_ : look_).Add(look);
  if (early_) first_steps_.Add(look, least_.steps(), traced);
  const LeastDetail::Told told = least_.Add(
      look,
      {.counts = least && !traced, .early = early_, .part = budget_ * hooks_part_});
  if (told.calm) ForgiveHooks(kColdNs);
  return told.no_steps;
}

// As much below 0 as above it: with a larger debt no detail would come back for long.
void Governor::PayHooks(double elapsed_ns, double hooks_ns) {
  const double part = budget_ * hooks_part_;
  const double most = part * static_cast<double>(kCreditNs);
  for (double* balance : {&hooks_balance_ns_, &detail_balance_ns_}) {
    *balance = std::clamp(*balance + part * elapsed_ns - hooks_ns, -most, most);
  }
}

void Governor::Pay(uint64_t elapsed_ns, double hooks_ns, double gpu_ns) {
  double elapsed = static_cast<double>(elapsed_ns);
  double credit = budget_ * static_cast<double>(kCreditNs);
  double debt = budget_ * static_cast<double>(kDebtNs);
  balance_ns_ =
      std::clamp(balance_ns_ + budget_ * elapsed - hooks_ns - gpu_ns, -debt, credit);
  PayHooks(elapsed, hooks_ns);
  double fade = std::exp(-elapsed / static_cast<double>(kCreditNs));
  recent_hooks_ns_ = recent_hooks_ns_ * fade + hooks_ns;
  recent_gpu_ns_ = recent_gpu_ns_ * fade + gpu_ns;
  gpu_since_release_ns_ += gpu_ns;
  // Launches, which it alone keeps.
  if (gpu_ns > 0 && verdict_.thinning == abi::kThinLaunches) {
    gpu_since_release_ns_ += hooks_ns;
  }

  if (verdict_.gpu_hold) {
    if (balance_ns_ < release_at_ns_) return;
    verdict_.gpu_hold = false;
    gpu_since_release_ns_ = 0;
    return;
  }
  bool nothing_else =
      verdict_.thinning == abi::kThinLaunches || keep_detail_ || GpuIsLargerPart();
  // Of a watch no detail goes for what hooks do not owe.
  nothing_else |= attached_ && !early_ && detail_balance_ns_ >= 0;
  if (balance_ns_ >= 0 || gpu_since_release_ns_ == 0 || !nothing_else) return;
  const bool first = attached_ && !window_ended_;
  if (first && balance_ns_ > -credit * kKeptForTracing) return;
  verdict_.gpu_hold = true;
  release_at_ns_ = std::min(gpu_since_release_ns_, credit);
}

void Governor::JudgeHooks(const HooksLook& look) {
  const double hooks_share = look.share();
  uint32_t& level = verdict_.thinning;
  if (keep_detail_) {
    level = abi::kThinNothing;
    calm_ = 0;
    least_.Forget();
    return;
  }
  bool low = hooks_share < budget_ / 2;
  // What a job's start costs is made up for later: no detail goes for that. A watch may
  // be over by then.
  const double saved = attached_ ? detail_balance_ns_ : balance_ns_;
  const double kept = budget_ * static_cast<double>(kCreditNs) * kKeptForTracing;
  bool saved_up = saved > (early_ ? 0 : kept);
  bool in_debt = !early_ && saved < 0;
  bool too_much =
      (hooks_share > budget_ && !saved_up) || (in_debt && !GpuIsLargerPart() && !low);
  if (too_much) {
    if (level == abi::kThinNativeStacks) ForgiveHooks(kColdNs);
    level = level == abi::kThinNothing ? abi::kThinNativeStacks : abi::kThinLaunches;
    highest_ = std::max(highest_, level);
    calm_ = 0;
  } else if (low && level > 0 && (early_ || detail_balance_ns_ >= 0)) {
    if (++calm_ == kCalmWindows) {
      level = level == abi::kThinLaunches ? abi::kThinNativeStacks : abi::kThinNothing;
      calm_ = 0;
    }
  } else {
    calm_ = 0;
  }
}

}  // namespace lull::relay
