#include "tests/cli/fixed_replies.h"

#include <initializer_list>
#include <string>

#include "daemon/advice/advice.h"
#include "tests/daemon/units.h"

namespace lull::testing {

void SetSite(v1::Site* site, const std::string& file, int line,
             const std::string& function) {
  site->set_file(file);
  site->set_line(line);
  site->set_function(function);
}

namespace {

template <typename Row>
void AddFrame(Row* row, const std::string& function, const std::string& file,
              int line) {
  v1::Frame* frame = row->add_stack();
  frame->set_function(function);
  frame->set_file(file);
  frame->set_line(line);
}

template <typename Row>
void AddNativeFrame(Row* row, const std::string& function, const std::string& module) {
  v1::Frame* frame = row->add_native_stack();
  frame->set_function(function);
  frame->set_module(module);
}

v1::Losses FixedLosses() {
  v1::Losses losses;
  losses.set_events_committed(1'204'118);
  losses.set_events_stored(1'204'118);
  losses.set_short_waits(88'412);
  losses.set_short_waits_ns(412 * kMs);
  return losses;
}

v1::Overhead FixedOverhead() {
  v1::Overhead overhead;
  overhead.set_self_ns(184 * kMs);
  overhead.set_percent(0.31);
  overhead.set_relay_cpu_ns(920 * kMs);
  overhead.set_budget_percent(1.0);
  return overhead;
}

v1::ReportReply Begin() {
  v1::ReportReply reply;
  *reply.mutable_job() = FixedJob();
  *reply.mutable_losses() = FixedLosses();
  *reply.mutable_overhead() = FixedOverhead();
  return reply;
}

void AddProcess(v1::ReportReply* reply, uint32_t pid, int rank, uint64_t data_wait_ns) {
  v1::ProcessRow* row = reply->add_processes();
  row->set_pid(pid);
  row->set_parent_pid(4300);
  row->set_rank(rank);
  row->set_command("python train.py --epochs 3");
  row->set_gpu(true);
  row->set_torch(true);
  row->set_duration_ns(60 * kSecond);
  row->set_events(602'059);
  row->set_launches(540'000);
  row->set_blocked_ns(6200 * kMs);
  row->set_data_wait_ns(data_wait_ns);
  row->set_gc_ns(900 * kMs);
  row->set_native_stacks(v1::NATIVE_STACK_STATE_ON);
  row->set_gc_hook(v1::GC_HOOK_STATE_ON);
}

}  // namespace

v1::Job FixedJob() {
  v1::Job job;
  job.set_id(kJobId);
  job.set_name(kJobName);
  job.set_command("torchrun --nproc-per-node 2 train.py --epochs 3");
  job.set_host("node7");
  job.set_start_realtime_ns(1'714'566'600'250'000'000);
  job.set_duration_ns(62'400 * kMs);
  job.set_ended(true);
  job.set_exit_status_known(true);
  job.set_exit_status(0);
  job.set_events(1'204'118);
  job.set_processes(3);
  job.set_working_processes(2);
  return job;
}

v1::ListJobsReply FixedJobs() {
  v1::ListJobsReply reply;
  v1::Job* running = reply.add_jobs();
  *running = FixedJob();
  running->set_id("77aa00ff" + std::string(24, '0'));
  running->set_name("");
  running->set_command(
      "python -m very.long.module.name --with 'arguments that go on and on'");
  running->set_ended(false);
  running->set_exit_status_known(false);
  running->set_duration_ns(7'500 * kSecond);
  *reply.add_jobs() = FixedJob();
  v1::Job* killed = reply.add_jobs();
  *killed = FixedJob();
  killed->set_id("0badcafe" + std::string(24, '0'));
  killed->set_name("bert");
  killed->set_exit_status(137);
  v1::Job* lost = reply.add_jobs();
  *lost = FixedJob();
  lost->set_id("12345678" + std::string(24, '0'));
  lost->set_name("gpt");
  lost->set_exit_status_known(false);
  lost->set_exit_status(0);
  return reply;
}

v1::ReportReply FixedSyncs() {
  v1::ReportReply reply = Begin();
  v1::Syncs* section = reply.mutable_syncs();
  v1::SyncPoint* item = section->add_sync_points();
  item->set_api("cudaStreamSynchronize");
  item->set_calls(3000);
  item->set_blocked_ns(8120 * kMs);
  item->set_max_ns(9300 * kUs);
  SetSite(item->mutable_site(), "train.py", 42, "train_step");
  AddFrame(item, "train_step", "train.py", 42);
  AddFrame(item, "main", "train.py", 88);
  AddNativeFrame(item, "at::native::_local_scalar_dense_cuda(at::Tensor const&)",
                 "/opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so");
  v1::SyncPoint* copy = section->add_sync_points();
  copy->set_api("cudaMemcpyAsync");
  copy->set_calls(1500);
  copy->set_blocked_ns(4100 * kMs);
  copy->set_max_ns(4020 * kUs);
  copy->set_bytes(6'144'000'000);
  SetSite(copy->mutable_site(),
          "/home/ada/projects/vision/experiments/resnet/loaders/batches.py", 17,
          "to_device");
  AddFrame(copy, "to_device",
           "/home/ada/projects/vision/experiments/resnet/loaders/batches.py", 17);
  v1::SyncPoint* once = section->add_sync_points();
  once->set_api("cudaDeviceSynchronize");
  once->set_calls(2);
  once->set_blocked_ns(180 * kMs);
  once->set_max_ns(120 * kMs);
  once->mutable_site()->set_function("warm_up()");
  section->set_total_blocked_ns(12'400 * kMs);
  section->set_total_calls(4502);
  return reply;
}

v1::ReportReply FixedAllocations() {
  v1::ReportReply reply = Begin();
  v1::Allocations* section = reply.mutable_allocations();
  v1::AllocationSite* tensors = section->add_allocation_sites();
  tensors->set_allocator("torch_cuda");
  tensors->set_calls(120'000);
  tensors->set_frees(119'800);
  tensors->set_bytes(3'221'225'472'000);
  tensors->set_live_bytes(419'430'400);
  tensors->set_peak_bytes(8'589'934'592);
  SetSite(tensors->mutable_site(), "model.py", 31, "Block.forward");
  AddFrame(tensors, "Block.forward", "model.py", 31);
  v1::AllocationSite* loop = section->add_allocation_sites();
  loop->set_allocator("cuda");
  loop->set_calls(3000);
  loop->set_frees(3000);
  loop->set_bytes(3'145'728'000);
  loop->set_live_bytes(0);
  loop->set_peak_bytes(1'048'576);
  loop->set_blocked_ns(2'600 * kMs);
  SetSite(loop->mutable_site(), "extension.cu", 120, "scratch_buffer(unsigned long)");
  section->set_total_bytes(3'224'371'200'000);
  section->set_total_calls(123'000);
  return reply;
}

v1::ReportReply FixedGc() {
  v1::ReportReply reply = Begin();
  v1::GcPauses* section = reply.mutable_gc();
  v1::GcPause* full = section->add_gc_pauses();
  full->set_generation(2);
  full->set_count(12);
  full->set_total_ns(1'500 * kMs);
  full->set_max_ns(160 * kMs);
  full->set_collected(90'000);
  SetSite(full->mutable_site(), "model.py", 31, "Block.forward");
  AddFrame(full, "Block.forward", "model.py", 31);
  v1::GcPause* young = section->add_gc_pauses();
  young->set_generation(0);
  young->set_count(1'400);
  young->set_total_ns(300 * kMs);
  young->set_max_ns(900 * kUs);
  young->set_collected(4);
  SetSite(young->mutable_site(), "train.py", 40, "train_step");
  section->set_total_ns(1'800 * kMs);
  section->set_total_count(1'412);
  return reply;
}

v1::ReportReply FixedWaits() {
  v1::ReportReply reply = Begin();
  v1::HostWaits* section = reply.mutable_waits();
  v1::HostWait* data = section->add_host_waits();
  data->set_kind("data");
  data->set_api("poll");
  data->set_count(1500);
  data->set_total_ns(27'600 * kMs);
  data->set_max_ns(410 * kMs);
  SetSite(data->mutable_site(), "train.py", 37, "main");
  AddFrame(data, "_MultiProcessingDataLoaderIter._try_get_data",
           "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py",
           1133);
  AddFrame(data, "main", "train.py", 37);
  v1::HostWait* lock = section->add_host_waits();
  lock->set_kind("lock");
  lock->set_api("sem_timedwait");
  lock->set_count(9);
  lock->set_total_ns(700 * kUs);
  lock->set_max_ns(130 * kUs);
  SetSite(lock->mutable_site(), "metrics.py", 9, "Meter.add");
  section->set_total_ns(27'600 * kMs + 700 * kUs);
  section->set_data_exact(true);
  return reply;
}

void Conclude(v1::ReportReply* reply) {
  *reply->mutable_shares() = SharesOf(*reply);
  *reply->mutable_advice() = WhatToChangeFirst(*reply);
}

v1::ReportReply FixedReport() {
  v1::ReportReply reply = Begin();
  AddProcess(&reply, 4312, 0, 13'900 * kMs);
  AddProcess(&reply, 4313, 1, 13'700 * kMs);
  v1::ProcessRow* launcher = reply.add_processes();
  launcher->set_pid(4300);
  launcher->set_parent_pid(4299);
  launcher->set_rank(-1);
  launcher->set_command(
      "/opt/venv/bin/python /opt/venv/bin/torchrun --nproc-per-node 2 train.py");
  launcher->set_duration_ns(62 * kSecond);
  launcher->set_gc_hook(v1::GC_HOOK_STATE_ON);
  reply.set_launches(1'080'000);
  *reply.mutable_syncs() = FixedSyncs().syncs();
  *reply.mutable_allocations() = FixedAllocations().allocations();
  *reply.mutable_gc() = FixedGc().gc();
  reply.mutable_gc()->set_full_in_steps_ns(1'500 * kMs);
  reply.mutable_gc()->set_full_in_steps_count(12);
  *reply.mutable_waits() = FixedWaits().waits();
  reply.mutable_gpu()->set_mode(v1::GPU_MODE_WINDOW);
  reply.mutable_gpu()->set_missing(kMissing);
  Conclude(&reply);
  return reply;
}

}  // namespace lull::testing
