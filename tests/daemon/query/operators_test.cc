// `lull ops`: launches of known stacks, through ingest, blame, store and query.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/base/backward_frames.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/query/engine.h"
#include "preload/abi/event.h"
#include "tests/daemon/collector/test_gpu.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

constexpr uint32_t kTid = 1000;
constexpr uint32_t kForwardPython = 100, kOptimizerPython = 101, kNodePython = 102;
constexpr uint32_t kAddmm = 110, kMm = 111, kForeach = 112, kNobody = 113;

using Functions = std::vector<std::pair<std::string, std::string>>;  // and their files

void AddStack(lull::v1::Batch& batch, uint32_t ref, bool native,
              const Functions& functions, const std::string& module = "") {
  lull::v1::Batch::Stacks* stacks = batch.add_stacks();
  stacks->set_process_key(1);
  lull::v1::StackDef* stack = stacks->add_stacks();
  stack->set_ref(ref);
  stack->set_native(native);
  for (const auto& [function, file] : functions) {
    lull::v1::Frame* frame = stack->add_frames();
    frame->set_function(function);
    frame->set_file(file);
    frame->set_line(7);
    frame->set_module(native ? "/libtorch_cpu.so" : module);
  }
}

class OperatorsOfAJob : public ::testing::Test {
 protected:
  OperatorsOfAJob() : pipeline_(Hello()) {
    batch_.set_sequence(1);
    *batch_.add_processes() = MakeProcess(1, 101, 0);
    AddGpu(batch_, 1);
    AddStack(batch_, kForwardPython, false, {{"Model.forward", "/home/u/model.py"}});
    AddStack(batch_, kOptimizerPython, false,
             {{"AdamW.step", "/v/lib/python3.11/site-packages/torch/optim/adamw.py"},
              {"train", "/home/u/train.py"}});
    AddStack(batch_, kNodePython, false, {{"AddmmBackward0", ""}}, kNodeModule);
    AddStack(batch_, kAddmm, true,
             {{"at::_ops::addmm::redispatch(c10::DispatchKeySet)", ""},
              {"at::_ops::addmm::call(at::Tensor const&)", ""},
              {"at::_ops::linear::call(at::Tensor const&)", ""}});
    AddStack(batch_, kMm, true,
             {{"at::_ops::mm::call(at::Tensor const&)", ""},
              {"torch::autograd::generated::AddmmBackward0::apply(int&&)", ""}});
    AddStack(batch_, kForeach, true,
             {{"at::_ops::_foreach_add__Scalar::call(at::Tensor&)", ""}});
    AddStack(batch_, kNobody, true, {{"launch_it", ""}});
    SetTracing(v1::TRACING_STATE_ACTIVE);
  }

  static lull::v1::Hello Hello() {
    lull::v1::Hello hello = MakeHello(MakeJobId(1));
    hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_WINDOW);  // windows
    return hello;
  }

  TestEvent& Record(uint32_t type, uint64_t duration_ns) {
    TestEvent event;
    event.type = type;
    event.start_ns = now_;
    event.duration_ns = duration_ns;
    event.tid = kTid + 1;
    records_.push_back(event);
    return records_.back();
  }

  void SetTracing(v1::TracingState state) {
    TracingView{Record(v1::EVENT_TYPE_GPU_TRACING, 0)}.set_state(state);
  }
  CorrelationId correlation() const { return CorrelationId{correlation_}; }

  // A call at these stacks, and a kernel that runs for so long.
  void Launch(uint32_t python, uint32_t native, uint64_t kernel_ns) {
    now_ += kMs;
    TestEvent launch;
    launch.type = v1::EVENT_TYPE_LAUNCH;
    launch.api = kApiLaunch;
    launch.start_ns = now_;
    launch.duration_ns = 10 * kUs;
    launch.python = python;
    launch.native = native;
    launch.tid = kTid;
    host_.push_back(launch);
    now_ += kUs;
    ++correlation_;
    TestEvent& call = Record(v1::EVENT_TYPE_API_CALL, 8 * kUs);
    call.api = kApiCudaLaunch;
    ApiCallView{call}.set_caller(ThreadId{kTid}).set_correlation(correlation());
    now_ += 20 * kUs;
    TestEvent& kernel = Record(v1::EVENT_TYPE_GPU_KERNEL, kernel_ns);
    kernel.python = 1;
    kernel.native = 1;
    OperationView{kernel}.set_correlation(correlation());
  }

  void Allocate(uint32_t python, uint32_t native, uint64_t bytes, uint32_t flags = 0) {
    TestEvent event;
    event.type = v1::EVENT_TYPE_TORCH_MEMORY;
    event.api = kApiTorch;
    event.start_ns = now_ += kUs;
    MemoryView{event}.set_address(now_).set_bytes(bytes).set_device(TorchCuda(0));
    event.python = python;
    event.native = native;
    event.flags = flags;
    event.tid = kTid;
    host_.push_back(event);
  }

  lull::v1::Operators Ask(lull::v1::OperatorSort sort = {}, uint32_t top = 0) {
    now_ += 20 * kSecond;
    SetTracing(v1::TRACING_STATE_OFF);
    now_ += kSecond;
    Record(v1::EVENT_TYPE_GPU_MARK, 0);
    AddRun(batch_, 1, 0, 0, host_);
    AddRun(batch_, 1, 1, 0, records_);
    AddCounters(batch_, 1, 0, host_.size(), now_ + 30 * kSecond);
    pipeline_.Apply(batch_);
    lull::v1::Batch end;
    end.set_sequence(2);
    lull::v1::Batch::ProcessEnd* process = end.add_process_ends();
    process->set_process_key(1);
    process->set_end_ns(now_ + 40 * kSecond);
    end.mutable_job_end()->set_end_ns(now_ + 40 * kSecond);
    pipeline_.Apply(end);
    pipeline_.Commit();
    lull::v1::ReportRequest request;
    request.add_sections(lull::v1::SECTION_OPERATORS);
    request.set_operator_sort(sort);
    request.set_top(top);
    return pipeline_.Report(request).operators();
  }

  uint64_t now_ = kJobStartNs + kSecond;
  uint32_t correlation_ = 0;
  std::vector<TestEvent> host_, records_;
  lull::v1::Batch batch_;
  Pipeline pipeline_;
};

TEST_F(OperatorsOfAJob, AreByOwnTimeWithWhatTheyCallBesideIt) {
  Launch(kForwardPython, kAddmm, 300 * kUs);
  Launch(kForwardPython, kAddmm, 100 * kUs);
  Launch(kNodePython, kMm, 900 * kUs);
  Launch(kOptimizerPython, kForeach, 50 * kUs);
  Launch(kForwardPython, kNobody, 20 * kUs);
  Launch(kForwardPython, 0, 10 * kUs);
  lull::v1::Operators reply = Ask();
  ASSERT_EQ(reply.operators_size(), 5) << reply.DebugString();
  const lull::v1::OperatorRow& mm = reply.operators(0);
  EXPECT_EQ(mm.name(), "aten::mm");
  EXPECT_EQ(mm.pass(), lull::v1::OPERATOR_PASS_BACKWARD);
  EXPECT_EQ(mm.own_gpu_ns(), 900 * kUs);
  const lull::v1::OperatorRow& addmm = reply.operators(1);
  EXPECT_EQ(addmm.name(), "aten::addmm");
  EXPECT_EQ(addmm.pass(), lull::v1::OPERATOR_PASS_FORWARD);
  EXPECT_EQ(addmm.launches(), 2u);
  EXPECT_EQ(addmm.own_launches(), 2u);
  EXPECT_EQ(addmm.own_gpu_ns(), 400 * kUs);
  EXPECT_EQ(addmm.site().file(), "/home/u/model.py");
  EXPECT_EQ(reply.operators(2).name(), "aten::_foreach_add_");
  EXPECT_EQ(reply.operators(2).pass(), lull::v1::OPERATOR_PASS_OPTIMIZER);
  const lull::v1::OperatorRow& node = reply.operators(3);
  EXPECT_EQ(node.name(), "AddmmBackward0");
  EXPECT_EQ(node.own_launches(), 0u);
  EXPECT_EQ(node.gpu_ns(), 900 * kUs);
  EXPECT_EQ(reply.operators(4).name(), "aten::linear");
  EXPECT_EQ(reply.operators(4).gpu_ns(), 400 * kUs);
  EXPECT_EQ(reply.gpu_ns(), 1'380 * kUs);
  EXPECT_EQ(reply.launches(), 6u);
  EXPECT_EQ(reply.unknown_gpu_ns(), 30 * kUs);
  EXPECT_EQ(reply.unknown_launches(), 2u);
}

TEST_F(OperatorsOfAJob, HaveTheBytesWhoseOperatorIsKnown) {
  Launch(kForwardPython, kAddmm, 300 * kUs);
  Launch(kNodePython, kMm, 100 * kUs);
  Allocate(kForwardPython, 0, 1000);
  Allocate(kNodePython, 0, 500);
  Allocate(kNodePython, kMm, 20);
  Allocate(kForwardPython, kAddmm, 10);
  Allocate(kForwardPython, kAddmm, 20);
  lull::v1::Operators reply = Ask(lull::v1::OPERATOR_SORT_MEMORY, 2);
  EXPECT_EQ(reply.rows(), 4u);
  ASSERT_EQ(reply.operators_size(), 2);
  EXPECT_EQ(reply.operators(0).name(), "aten::addmm");
  EXPECT_EQ(reply.operators(0).own_allocated_bytes(), 30u);
  EXPECT_EQ(reply.operators(0).own_allocations(), 2u);
  EXPECT_EQ(reply.operators(1).name(), "aten::linear");
  EXPECT_EQ(reply.operators(1).allocated_bytes(), 30u);
  EXPECT_EQ(reply.operators(1).own_allocated_bytes(), 0u);
  EXPECT_EQ(reply.allocated_bytes(), 1550u);
  for (const lull::v1::OperatorRow& row : reply.operators()) {
    EXPECT_FALSE(row.estimated());
    EXPECT_EQ(row.error_bytes(), 0u) << "it is exact";
  }
  EXPECT_EQ(reply.known_bytes(), 50u);
}

// One small block has a stack and stands for 1 024; another has none, whoever it was.
TEST_F(OperatorsOfAJob, HaveNotAllBytesWhereSomeBlocksStandForOthers) {
  Launch(kForwardPython, kAddmm, 300 * kUs);
  Launch(kOptimizerPython, kForeach, 100 * kUs);
  Allocate(kForwardPython, kAddmm, 512, abi::kFlagDrawn);
  Allocate(0, 0, 512, abi::kFlagUndrawn);
  lull::v1::Operators reply = Ask();
  ASSERT_EQ(reply.operators_size(), 3);
  EXPECT_EQ(reply.operators(0).name(), "aten::addmm");
  EXPECT_TRUE(reply.operators(0).estimated());
  EXPECT_EQ(reply.operators(1).name(), "aten::_foreach_add_");
  EXPECT_EQ(reply.operators(1).allocated_bytes(), 0u);
  EXPECT_EQ(reply.allocated_bytes(), 1024u);
  // Equal would say that the second allocated nothing.
  EXPECT_EQ(reply.known_bytes(), 1023u);
}

}  // namespace
}  // namespace lull::test
