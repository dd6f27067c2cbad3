// Stacks of the made-up job: three ranks wait for a fourth, which reads a file.
#include "tests/cli/fixed_replies.h"
#include "tests/daemon/units.h"

namespace lull::testing {
namespace {

void AddThread(v1::ThreadStack* stack, int rank, v1::HostSampleState state,
               uint64_t same_for_ms) {
  v1::StackThread* thread = stack->add_threads();
  thread->set_rank(rank);
  thread->set_pid(4'100 + static_cast<uint32_t>(rank));
  thread->set_tid(4'100 + static_cast<uint32_t>(rank));
  thread->set_state(state);
  thread->set_age_ns(80 * kMs);
  thread->set_same_for_ns(same_for_ms * kMs);
  thread->set_looks(static_cast<uint32_t>(same_for_ms / 100) + 1);
}

void AddFrame(v1::ThreadStack* stack, const char* function, const char* file, int line) {
  v1::Frame* frame = stack->add_stack();
  frame->set_function(function);
  frame->set_file(file);
  frame->set_line(line);
}

void SetSite(v1::ThreadStack* stack, const v1::Frame& frame) {
  stack->mutable_site()->set_function(frame.function());
  stack->mutable_site()->set_file(frame.file());
  stack->mutable_site()->set_line(frame.line());
}

}  // namespace

v1::ReportReply FixedStacks() {
  v1::ReportReply reply = FixedWaits();
  reply.clear_waits();
  reply.mutable_job()->set_ended(false);
  v1::NewestStacks* stacks = reply.mutable_stacks();
  stacks->set_at_ns(130'000 * kMs);
  stacks->set_window_ns(30'000 * kMs);
  stacks->set_processes(5);
  stacks->set_since_step_ns(29'800 * kMs);
  stacks->set_step_ns(102 * kMs);
  v1::ThreadStack* wait = stacks->add_stacks();
  wait->set_role(v1::HOST_SAMPLE_ROLE_MAIN);
  AddFrame(wait, "all_reduce",
           "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 1320);
  AddFrame(wait, "train", "ddp.py", 31);
  SetSite(wait, wait->stack(1));
  for (int rank : {0, 1, 3}) {
    AddThread(wait, rank, v1::HOST_SAMPLE_STATE_BLOCKED, 29'700);
  }
  v1::ThreadStack* read = stacks->add_stacks();
  read->set_role(v1::HOST_SAMPLE_ROLE_MAIN);
  read->set_cut(true);
  AddFrame(read, "load", "ddp.py", 12);
  SetSite(read, read->stack(0));
  AddThread(read, 2, v1::HOST_SAMPLE_STATE_RUNNING, 0);
  v1::ThreadStack* workers = stacks->add_stacks();
  workers->set_role(v1::HOST_SAMPLE_ROLE_LOADER);
  for (int pid : {1, 2}) {
    AddThread(workers, -1, pid == 1 ? v1::HOST_SAMPLE_STATE_READY
                                    : v1::HOST_SAMPLE_STATE_BLOCKED, 400);
    workers->mutable_threads(pid - 1)->set_pid(4'200 + static_cast<uint32_t>(pid));
    workers->mutable_threads(pid - 1)->set_age_ns(12'000 * kMs);
  }
  return reply;
}

}  // namespace lull::testing
