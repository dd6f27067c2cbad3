#include "daemon/relay/control/arming.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace lull::relay {
namespace {

constexpr uint64_t kForever = uint64_t{1} << 62;

}  // namespace

Arming::Arming(bool dormant, uint64_t job_start_ns, GpuPlan plan)
    : first_plan_(plan),
      plan_(std::move(plan)),
      armed_(!dormant),
      number_(dormant ? 0 : 1),
      start_ns_(dormant ? 0 : job_start_ns) {}

void Arming::Resume(const lull::v1::ArmedStretch& last) {
  number_ = last.number();
  start_ns_ = last.start_ns();
  end_ns_ = last.end_ns();
  armed_ = end_ns_ == 0;
  until_ns_ = armed_ ? last.until_ns() : 0;
  command_ = last.command();
  auto plan = PlanOf(last.gpu());
  if (plan.ok()) plan_ = *plan;
}

void Arming::Take(const lull::v1::ArmCommand& command, uint64_t now_ns) {
  if (command.number() <= command_) return;
  command_ = command.number();
  error_.clear();
  if (!command.armed()) return Sleep(now_ns);
  absl::StatusOr<GpuPlan> plan =
      command.has_gpu() ? PlanOf(command.gpu()) : first_plan_;
  if (!plan.ok()) {
    error_ = std::string(plan.status().message());
    return;
  }
  plan_ = *plan;
  until_ns_ = command.for_ns() == 0 ? 0 : now_ns + std::min(command.for_ns(), kForever);
  Wake(now_ns);
  changed_ = true;  // the plan or the end of it
}

void Arming::Wake(uint64_t now_ns) {
  if (armed_) return;
  ++number_;
  start_ns_ = now_ns;
  end_ns_ = 0;
  armed_ = true;
  changed_ = true;
}

void Arming::Update(uint64_t now_ns) {
  if (armed_ && until_ns_ != 0 && now_ns >= until_ns_) Sleep(now_ns);
}

void Arming::Sleep(uint64_t now_ns) {
  if (!armed_) return;
  armed_ = false;
  until_ns_ = 0;
  SetEnd(now_ns);
  changed_ = true;
}

void Arming::SetEnd(uint64_t slept_ns) { end_ns_ = std::max(slept_ns, start_ns_ + 1); }

std::optional<lull::v1::ArmedStretch> Arming::Stretch() const {
  if (number_ == 0) return std::nullopt;
  lull::v1::ArmedStretch stretch;
  stretch.set_number(number_);
  stretch.set_start_ns(start_ns_);
  stretch.set_end_ns(end_ns_);
  stretch.set_command(command_);
  stretch.set_until_ns(until_ns_);
  *stretch.mutable_gpu() = GpuOf(plan_);
  return stretch;
}

absl::StatusOr<GpuPlan> PlanOf(const lull::v1::ArmCommand::Gpu& gpu) {
  if (!lull::v1::GpuMode_IsValid(gpu.mode())) {
    return absl::InvalidArgumentError(absl::StrCat("no GPU mode ", gpu.mode()));
  }
  GpuPlan plan;
  if (!gpu.schedule().empty()) {
    LULL_ASSIGN_OR_RETURN(plan, ParseGpuSchedule(gpu.schedule()));
  }
  plan.mode = gpu.mode();
  return plan;
}

lull::v1::ArmCommand::Gpu GpuOf(const GpuPlan& plan) {
  lull::v1::ArmCommand::Gpu gpu;
  gpu.set_mode(plan.mode);
  gpu.set_schedule(ScheduleText(plan));
  return gpu;
}

}  // namespace lull::relay
