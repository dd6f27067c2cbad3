#include "tests/daemon/collector/test_job.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lull::test {
namespace {

void AddFrame(lull::v1::StackDef& stack, const std::string& function,
              const std::string& file, int32_t line, const std::string& module = "") {
  lull::v1::Frame* frame = stack.add_frames();
  frame->set_function(function);
  frame->set_file(file);
  frame->set_line(line);
  frame->set_module(module);
}

lull::v1::StackDef MakePythonStack(uint32_t ref) {
  lull::v1::StackDef stack;
  stack.set_ref(ref);
  AddFrame(stack, "wait", "/usr/lib/python3.11/threading.py", 300);
  if (ref == kDataStack) {
    AddFrame(stack, "_next_data",
             "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 633);
  }
  AddFrame(stack, absl::StrCat("f", ref % 2), "/home/u/train.py",
           10 + static_cast<int32_t>(ref % 3));
  AddFrame(stack, "main", "/home/u/train.py", 100 + static_cast<int32_t>(ref));
  return stack;
}

lull::v1::StackDef MakeNativeStack(uint32_t ref) {
  lull::v1::StackDef stack;
  stack.set_ref(ref);
  stack.set_native(true);
  AddFrame(stack, "cudaMalloc", "", 0, "/opt/libcudart.so.12");
  AddFrame(stack, absl::StrCat("at::op", ref), "", 0, "/opt/libtorch.so");
  return stack;
}

}  // namespace

std::vector<lull::v1::StackDef> MakeStacks() {
  std::vector<lull::v1::StackDef> stacks;
  for (uint32_t ref = 1; ref <= kPythonStacks; ++ref)
    stacks.push_back(MakePythonStack(ref));
  for (uint32_t i = 1; i <= kNativeStacks; ++i) {
    stacks.push_back(MakeNativeStack(kPythonStacks + i));
  }
  return stacks;
}

std::string MakeJobId(uint32_t number) {
  return absl::StrFormat("%08x%024d", number, 0);
}

lull::v1::Hello MakeHello(const std::string& job_id, const std::string& name) {
  lull::v1::Hello hello;
  hello.set_protocol_version(2);
  lull::v1::JobInfo* job = hello.mutable_job();
  job->set_id(job_id);
  job->set_name(name);
  job->set_command("python train.py");
  job->set_start_ns(kJobStartNs);
  job->set_start_realtime_ns(1'700'000'000'000'000'000);
  const char* names[] = {"cudaStreamSynchronize",
                         "cudaMalloc",
                         "cudaFree",
                         "c10::reportMemoryUsageToProfiler",
                         "poll",
                         "pthread_cond_timedwait",
                         "cudaLaunchKernel"};
  for (uint32_t id = 1; id <= kApiCount; ++id) {
    lull::v1::ApiName* api = hello.add_apis();
    api->set_id(id);
    api->set_name(names[id - 1]);
  }
  return hello;
}

lull::v1::ProcessInfo MakeProcess(uint64_t key, uint32_t pid, int32_t rank) {
  lull::v1::ProcessInfo process;
  process.set_key(key);
  process.set_pid(pid);
  process.set_start_ns(kJobStartNs);
  process.set_command("python train.py");
  process.set_rank(rank);
  process.set_local_rank(rank);
  return process;
}

void AddRun(lull::v1::Batch& batch, uint64_t process_key, uint32_t ring,
            uint64_t first_position, const std::vector<TestEvent>& events) {
  lull::v1::RingBatch* run = batch.add_rings();
  run->set_process_key(process_key);
  run->set_ring(ring);
  lull::v1::EventColumns* out = run->mutable_events();
  out->set_first_position(first_position);
  uint64_t previous = events.empty() ? 0 : events.front().start_ns;
  out->set_base_ns(previous);
  for (const TestEvent& event : events) {
    out->add_start_delta_ns(static_cast<int64_t>(event.start_ns - previous));
    previous = event.start_ns;
    out->add_duration_ns(event.duration_ns);
    out->add_type(event.type);
    out->add_flags(event.flags);
    out->add_api(event.api);
    out->add_python_stack(event.python);
    out->add_native_stack(event.native);
    out->add_arg0(event.arg0);
    out->add_arg1(event.arg1);
    out->add_arg2(event.arg2);
    out->add_tid(event.tid);
  }
}

void AddStacks(lull::v1::Batch& batch, uint64_t process_key) {
  lull::v1::Batch::Stacks* stacks = batch.add_stacks();
  stacks->set_process_key(process_key);
  for (lull::v1::StackDef& stack : MakeStacks())
    *stacks->add_stacks() = std::move(stack);
}

void AddCounters(lull::v1::Batch& batch, uint64_t process_key, uint32_t ring,
                 uint64_t committed, uint64_t as_of_ns) {
  lull::v1::ProcessCounters* counters = batch.add_counters();
  counters->set_process_key(process_key);
  counters->set_gpu_calls(1);
  counters->set_as_of_ns(as_of_ns);
  lull::v1::RingCounters* totals = counters->add_rings();
  totals->set_ring(ring);
  totals->set_committed(committed);
}

}  // namespace lull::test
