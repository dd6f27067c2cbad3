// GPU truth of the made-up job. The causes sum to the idle time, as those of a
// collector do.
#include <initializer_list>
#include <string>

#include "tests/cli/fixed_replies.h"
#include "tests/daemon/units.h"

namespace lull::testing {
namespace {

constexpr uint32_t kPids[] = {4312, 4313};

void SetFrame(v1::Frame* frame, const std::string& function, const std::string& file,
              int line) {
  frame->set_function(function);
  frame->set_file(file);
  frame->set_line(line);
}

v1::ReportReply BeginGpu() {
  v1::ReportReply any = FixedSyncs();
  v1::ReportReply reply;
  *reply.mutable_job() = FixedJob();
  *reply.mutable_gpu() = FixedGpu();
  *reply.mutable_losses() = any.losses();
  *reply.mutable_overhead() = any.overhead();
  return reply;
}

void AddSpan(v1::Gpu* gpu, uint32_t pid, uint64_t start_ns, uint64_t duration_ns,
             v1::TracingState state,
             v1::TracingReason reason = v1::TRACING_REASON_SCHEDULE) {
  v1::TracingSpan* span = gpu->add_spans();
  span->set_pid(pid);
  span->set_start_ns(start_ns);
  span->set_duration_ns(duration_ns);
  span->set_state(state);
  span->set_reason(reason);
}

void AddCause(v1::Gaps* reply, v1::GapCause cause, uint64_t count, uint64_t total_ns,
              uint64_t max_ns) {
  v1::CauseRow* row = reply->add_causes();
  row->set_cause(cause);
  row->set_count(count);
  row->set_total_ns(total_ns);
  row->set_max_ns(max_ns);
}

// Between train.py:`before` and train.py:`after`; the culprit is `after` until set.
v1::GapRow* AddGap(v1::Gaps* reply, v1::GapCause cause, int before, int after,
                   uint64_t count, uint64_t total_ns, uint64_t max_ns) {
  v1::GapRow* row = reply->add_gaps();
  row->set_cause(cause);
  SetSite(row->mutable_before(), "train.py", before, "train_step");
  SetSite(row->mutable_after(), "train.py", after, "train_step");
  *row->mutable_culprit() = row->after();
  row->set_count(count);
  row->set_total_ns(total_ns);
  row->set_max_ns(max_ns);
  return row;
}

void AddRegion(v1::GapRow* row, const std::string& around, const std::string& name,
               uint64_t total_ns) {
  v1::GapRegion* region = row->add_regions();
  region->add_path(around);
  region->set_name(name);
  region->set_total_ns(total_ns);
}

v1::KernelRow* AddKernel(v1::Kernels* reply, const std::string& name, uint64_t calls,
                         uint64_t total_ns, int line) {
  v1::KernelRow* row = reply->add_kernels();
  row->set_name(name);
  row->set_calls(calls);
  row->set_total_ns(total_ns);
  row->set_min_ns(total_ns / calls / 2);
  row->set_max_ns(total_ns / calls * 3);
  SetSite(row->mutable_site(), "model.py", line, "Block.forward");
  return row;
}

void AddCopy(v1::Kernels* reply, const std::string& direction,
             const std::string& memory, uint64_t count, uint64_t bytes,
             uint64_t total_ns) {
  v1::CopyRow* row = reply->add_copies();
  row->set_direction(direction);
  row->set_memory(memory);
  row->set_count(count);
  row->set_bytes(bytes);
  row->set_total_ns(total_ns);
}

void SetParts(v1::StepRow* step, std::initializer_list<uint64_t> parts_us) {
  auto part = parts_us.begin();
  step->set_kernel_ns(*part++ * kUs);
  step->set_memcpy_ns(*part++ * kUs);
  step->set_memset_ns(*part++ * kUs);
  step->set_communication_ns(*part++ * kUs);
  step->set_runtime_ns(*part++ * kUs);
  step->set_data_ns(*part++ * kUs);
  step->set_host_ns(*part++ * kUs);
  step->set_other_ns(*part++ * kUs);
  uint64_t sum = 0;
  for (uint64_t us : parts_us) sum += us * kUs;
  step->set_duration_ns(sum);
}

}  // namespace

v1::Gpu FixedGpu() {
  v1::Gpu gpu;
  gpu.set_mode(v1::GPU_MODE_WINDOW);
  gpu.set_schedule("skip_first=10,wait=40,warmup=2,active=8");
  gpu.set_devices(2);
  gpu.set_traced_ns(24'600 * kMs);
  gpu.set_busy_ns(10'100 * kMs);
  gpu.set_kernel_ns(9'700 * kMs);
  gpu.set_idle_ns(14'500 * kMs);
  gpu.set_unknown_ns(200 * kMs);
  gpu.set_explained_ns(12'900 * kMs);
  gpu.set_kernels(250'000);
  gpu.set_copies(6'000);
  gpu.set_memsets(900);
  gpu.set_records_lost(120);
  for (uint64_t window = 0; window < 9; ++window) {
    for (uint32_t pid : kPids) {
      AddSpan(&gpu, pid, (3'100 + 6'500 * window) * kMs, 1'366 * kMs,
              v1::TRACING_STATE_ACTIVE);
    }
  }
  AddSpan(&gpu, kPids[0], 58 * kSecond, 2'100 * kMs, v1::TRACING_STATE_YIELDED,
          v1::TRACING_REASON_OTHER_USER);
  gpu.set_yielded_ns(2'100 * kMs);
  gpu.set_verdict("data");
  return gpu;
}

v1::ReportReply FixedGaps() {
  v1::ReportReply reply = BeginGpu();
  v1::Gaps* section = reply.mutable_gaps();
  AddCause(section, v1::GAP_CAUSE_DATA_WAIT, 310, 6'400 * kMs, 400 * kMs);
  AddCause(section, v1::GAP_CAUSE_SYNC, 640, 3'900 * kMs, 9 * kMs);
  AddCause(section, v1::GAP_CAUSE_LAUNCH_BOUND, 91'000, 2'200 * kMs, 90 * kUs);
  AddCause(section, v1::GAP_CAUSE_GC, 5, 900 * kMs, 160 * kMs);
  AddCause(section, v1::GAP_CAUSE_HOST_CODE, 300, 600 * kMs, 3 * kMs);
  AddCause(section, v1::GAP_CAUSE_LAUNCH_LATENCY, 60'000, 300 * kMs, 12 * kUs);
  AddCause(section, v1::GAP_CAUSE_UNKNOWN, 2, 200 * kMs, 150 * kMs);

  v1::GapRow* data =
      AddGap(section, v1::GAP_CAUSE_DATA_WAIT, 44, 38, 310, 6'400 * kMs, 400 * kMs);
  SetSite(data->mutable_culprit(), "train.py", 37, "main");
  data->set_culprit_api("poll");
  v1::GapRow* sync =
      AddGap(section, v1::GAP_CAUSE_SYNC, 41, 44, 320, 3'200 * kMs, 9 * kMs);
  SetSite(sync->mutable_culprit(), "train.py", 42, "train_step");
  sync->set_culprit_api("cudaStreamSynchronize");
  AddRegion(sync, "step", "forward", 3'200 * kMs);
  SetFrame(sync->add_stack(), "train_step", "train.py", 42);
  SetFrame(sync->add_stack(), "main", "train.py", 88);
  sync->add_native_stack()->set_function("at::native::item(at::Tensor const&)");
  AddGap(section, v1::GAP_CAUSE_LAUNCH_BOUND, 40, 40, 91'000, 2'200 * kMs, 90 * kUs);
  v1::GapRow* collection =
      AddGap(section, v1::GAP_CAUSE_GC, 40, 41, 5, 900 * kMs, 160 * kMs);
  SetSite(collection->mutable_culprit(), "model.py", 31, "Block.forward");
  v1::GapRow* code =
      AddGap(section, v1::GAP_CAUSE_HOST_CODE, 44, 46, 300, 600 * kMs, 3 * kMs);
  SetSite(code->mutable_before(),
          "/home/ada/projects/vision/experiments/resnet/metrics/running_average.py",
          112, "RunningAverage.update");
  AddDoing(code);
  AddRegion(code, "epoch", "step", 420 * kMs);
  AddRegion(code, "epoch", "checkpoint", 60 * kMs);
  v1::GapRow* unknown =
      AddGap(section, v1::GAP_CAUSE_UNKNOWN, 0, 0, 2, 200 * kMs, 150 * kMs);
  unknown->clear_before();
  unknown->clear_after();
  unknown->clear_culprit();
  return reply;
}

v1::ReportReply FixedKernels() {
  v1::ReportReply reply = BeginGpu();
  v1::Kernels* section = reply.mutable_kernels();
  v1::KernelRow* gemm =
      AddKernel(section, "ampere_sgemm_128x64_tn", 30'000, 6'000 * kMs, 31);
  gemm->set_operator_name("aten::addmm");
  gemm->set_blocks_per_sm(2.25);
  gemm->set_occupancy_percent(37.5);
  v1::KernelRow* add = AddKernel(
      section,
      "void at::native::vectorized_elementwise_kernel<4, "
      "at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, "
      "at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
      150'000, 1'500 * kMs, 33);
  add->set_operator_name("aten::add");
  SetFrame(add->add_stack(), "Block.forward", "model.py", 33);
  v1::KernelRow* attention = AddKernel(
      section, "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32", 10'000, 900 * kMs, 52);
  attention->set_tensor_core(true);
  section->set_total_ns(9'800 * kMs);
  section->set_total_calls(250'000);
  AddCopy(section, "HtoD", "pageable", 3'000, 12'288'000'000, 2'600 * kMs);
  AddCopy(section, "DtoH", "pinned", 3'000, 12'000, 6 * kMs);
  AddCopy(section, "memset", "", 900, 943'718'400, 1 * kMs);
  return reply;
}

void AddPhasePart(v1::Steps* steps, v1::Phase phase, v1::PhasePartKind kind,
                  uint64_t ms, double percent = 0, double half = 0) {
  v1::PhasePart* part = steps->add_phase_parts();
  part->set_phase(phase);
  part->set_kind(kind);
  part->set_time_ns(ms * kMs);
  if (percent <= 0) return;  // exact
  part->set_samples(40);
  part->mutable_share()->set_percent(percent);
  part->mutable_share()->set_low_percent(percent - half);
  part->mutable_share()->set_high_percent(percent + half);
}

void SetEstimate(double percent, double low, double high, v1::Estimate* estimate) {
  estimate->set_percent(percent);
  estimate->set_low_percent(low);
  estimate->set_high_percent(high);
}

// As what was traced in steps has it.
void SetStepCost(v1::ReportReply* reply) {
  v1::StepCost* cost = reply->mutable_overhead()->mutable_step_cost();
  cost->set_pid(kPids[0]);
  cost->set_rank(0);
  cost->set_windows(56);
  cost->set_traced_steps(280);
  cost->set_untraced_steps(1'068);
  SetEstimate(9.1, 7.2, 11.04, cost->mutable_traced_longer());
  SetEstimate(1.9, 1.52, 2.31, cost->mutable_paid());
  SetEstimate(-0.2, -1.5, 1.1, cost->mutable_between_longer());
}

v1::ReportReply FixedSteps() {
  v1::ReportReply reply = BeginGpu();
  SetStepCost(&reply);
  v1::Steps* section = reply.mutable_steps();
  section->set_source("optimizer");
  section->set_count(1'460);
  SetParts(section->mutable_median(),
           {31'200, 4'100, 20, 900, 2'300, 21'400, 1'800, 980});
  section->mutable_median()->set_traced(true);
  for (int i = 0; i < 3; ++i) {
    v1::StepRow* step = section->add_steps();
    step->set_pid(kPids[0]);
    step->set_rank(0);
    step->set_number(1'457 + i);
    step->set_start_ns((61'900 + 65 * i) * kMs);
    step->set_traced(i < 2);
    SetParts(step, {i < 2 ? 31'000u : 0u, i < 2 ? 4'000u : 0u, i < 2 ? 20u : 0u,
                    i < 2 ? 800u : 0u, 2'200, 24'000, 1'700, 1'080});
  }
  section->set_gpu_utilization_percent(39.4);
  section->set_sm_efficiency_percent(33.1);
  section->set_occupancy_percent(41.7);
  section->set_tensor_core_percent(9.2);
  section->set_setup_ns(6'200 * kMs);
  AddPhasePart(section, v1::PHASE_SETUP, v1::PHASE_PART_IMPORTS, 4'100, 66.1, 4);
  AddPhasePart(section, v1::PHASE_SETUP, v1::PHASE_PART_MODEL_TO_DEVICE, 900, 14.5, 3);
  AddPhasePart(section, v1::PHASE_SETUP, v1::PHASE_PART_FIRST_STEPS, 1'100);
  AddPhasePart(section, v1::PHASE_STEADY, v1::PHASE_PART_CHECKPOINT, 2'100, 4, 0.5);
  AddPhasePart(section, v1::PHASE_STEADY, v1::PHASE_PART_END, 300);
  return reply;
}

v1::ReportReply FixedGpuSyncs() {
  v1::ReportReply reply = FixedSyncs();
  *reply.mutable_gpu() = FixedGpu();
  v1::SyncPoint* item = reply.mutable_syncs()->mutable_sync_points(0);
  item->set_judged_calls(640);
  item->set_judged_blocked_ns(1'730 * kMs);
  item->set_needed_ns(1'690 * kMs);
  item->set_wasted_ns(3'200 * kMs);
  v1::SyncPoint* copy = reply.mutable_syncs()->mutable_sync_points(1);
  copy->set_judged_calls(320);
  copy->set_judged_blocked_ns(875 * kMs);
  copy->set_needed_ns(860 * kMs);
  copy->set_wasted_ns(700 * kMs);
  return reply;
}

v1::ReportReply FixedGpuReport() {
  v1::ReportReply reply = FixedReport();
  *reply.mutable_gpu() = FixedGpu();
  *reply.mutable_syncs() = FixedGpuSyncs().syncs();
  *reply.mutable_gaps() = FixedGaps().gaps();
  *reply.mutable_kernels() = FixedKernels().kernels();
  *reply.mutable_steps() = FixedSteps().steps();
  SetStepCost(&reply);
  for (int i = 0; i < 2; ++i) {
    v1::ProcessRow* process = reply.mutable_processes(i);
    process->set_cupti_state(v1::CUPTI_STATE_READY);
    process->set_cupti_version(22);
    process->set_traced_ns(12'300 * kMs);
    process->set_busy_ns(5'050 * kMs);
    v1::DeviceRow* device = reply.add_devices();
    device->set_pid(kPids[i]);
    device->set_name("NVIDIA H100 80GB HBM3");
    device->set_multiprocessors(132);
    device->set_compute_capability(90);
    device->set_total_bytes(85'000'000'000);
    device->set_traced_ns(12'300 * kMs);
    device->set_busy_ns(5'050 * kMs);
  }
  v1::NonFinite* nan = reply.add_non_finite();
  nan->set_pid(kPids[1]);
  nan->set_rank(1);
  nan->set_value("nan");
  nan->set_time_ns(51'200 * kMs);
  nan->set_step(812);
  nan->set_step_known(true);
  SetSite(nan->mutable_site(), "train.py", 42, "train_step");
  Conclude(&reply);
  return reply;
}

v1::ReportReply FixedAnswer() {
  v1::ReportReply reply = FixedGpuReport();
  *reply.mutable_memory() = FixedMemory().memory();
  *reply.mutable_hot() = FixedHot().hot();
  *reply.mutable_data() = FixedData().data();
  *reply.mutable_operators() = FixedOperators().operators();
  *reply.mutable_ranks() = FixedRanks().ranks();
  *reply.mutable_stacks() = FixedStacks().stacks();
  return reply;
}

}  // namespace lull::testing
