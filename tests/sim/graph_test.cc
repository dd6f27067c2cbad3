// Stream capture: what it records, what it forbids, and what a graph replays.
#include "tests/sim/driver_fixture.h"

namespace lull::sim {
namespace {

constexpr int kGlobal = 0, kThreadLocal = 1, kRelaxed = 2;

class Graphs : public DriverTest {
 protected:
  void begin(void* s, int mode = kGlobal) {
    ASSERT_EQ(cu.cuStreamBeginCapture_v2.legacy(s, mode), 0);
  }
  void* end(void* s) {
    void *graph = nullptr, *exec = nullptr;
    EXPECT_EQ(cu.cuStreamEndCapture.legacy(s, &graph), 0);
    EXPECT_EQ(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    EXPECT_EQ(cu.cuGraphDestroy(graph), 0);
    return exec;
  }
  int end_error(void* s) {
    void* graph = nullptr;
    return cu.cuStreamEndCapture.legacy(s, &graph);
  }
};

TEST_F(Graphs, CapturingRunsNothing) {
  void* s = stream();
  begin(s);
  ASSERT_EQ(launch(s, kMillisecond), 0);
  void* exec = end(s);
  EXPECT_TRUE(ops().empty());
  ASSERT_EQ(cu.cuGraphLaunch.legacy(exec, s), 0);
  EXPECT_EQ(kernels().size(), 1u);
}

TEST_F(Graphs, ReplaysNodesInTheOrderOfCaptureEachTime) {
  void* s = stream();
  begin(s);
  for (int i = 1; i <= 3; ++i) ASSERT_EQ(launch(s, i * kMillisecond), 0);
  void* exec = end(s);
  ASSERT_EQ(cu.cuGraphLaunch.legacy(exec, s), 0);
  ASSERT_EQ(cu.cuGraphLaunch.legacy(exec, s), 0);
  auto all = kernels();
  ASSERT_EQ(all.size(), 6u);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i].start_ns, all[i - 1].end_ns);
  EXPECT_EQ(all[2].end_ns - all[2].start_ns, 3 * kMillisecond);
  EXPECT_EQ(all[0].correlation, all[2].correlation);
  EXPECT_NE(all[0].correlation, all[3].correlation);
  EXPECT_NE(all[0].aux, 0u) << "id of the graph";
}

TEST_F(Graphs, BranchesOfAForkedCaptureRunAtTheSameTime) {
  void *a = stream(), *b = stream(), *fork = event(), *join = event();
  begin(a);
  ASSERT_EQ(launch(a, kMillisecond), 0);
  ASSERT_EQ(cu.cuEventRecordWithFlags.legacy(fork, a, 0), 0);
  ASSERT_EQ(cu.cuStreamWaitEvent.legacy(b, fork, 0), 0);
  ASSERT_EQ(launch(a, 2 * kMillisecond), 0);
  ASSERT_EQ(launch(b, 3 * kMillisecond), 0);
  ASSERT_EQ(cu.cuEventRecordWithFlags.legacy(join, b, 0), 0);
  ASSERT_EQ(cu.cuStreamWaitEvent.legacy(a, join, 0), 0);
  ASSERT_EQ(launch(a, kMillisecond), 0);
  void* exec = end(a);
  ASSERT_EQ(cu.cuGraphLaunch.legacy(exec, a), 0);
  auto all = kernels();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].start_ns, all[0].end_ns);
  EXPECT_EQ(all[2].start_ns, all[0].end_ns);
  EXPECT_EQ(all[3].start_ns, all[2].end_ns);
}

TEST_F(Graphs, ACaptureThatLeavesAStreamBehindFails) {
  void *a = stream(), *b = stream(), *fork = event();
  begin(a);
  ASSERT_EQ(cu.cuEventRecordWithFlags.legacy(fork, a, 0), 0);
  ASSERT_EQ(cu.cuStreamWaitEvent.legacy(b, fork, 0), 0);
  ASSERT_EQ(launch(b, kMillisecond), 0);
  EXPECT_EQ(end_error(a), 904);
}

TEST_F(Graphs, SynchronizingInACaptureSpoilsIt) {
  void* s = stream();
  begin(s);
  EXPECT_EQ(cu.cuStreamSynchronize.legacy(s), 900);
  EXPECT_EQ(launch(s, kMillisecond), 901);
  EXPECT_EQ(end_error(s), 901);
  EXPECT_EQ(launch(s, kMillisecond), 0) << "the stream works again";
}

TEST_F(Graphs, AllocatingDuringAGlobalCaptureSpoilsItUnlessTheThreadIsRelaxed) {
  void* s = stream();
  uint64_t address = 0;
  begin(s);
  EXPECT_EQ(cu.cuMemAlloc_v2(&address, 4096), 900);
  EXPECT_EQ(end_error(s), 901);

  int mode = kRelaxed;
  ASSERT_EQ(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
  EXPECT_EQ(mode, kGlobal);
  begin(s);
  EXPECT_EQ(cu.cuMemAlloc_v2(&address, 4096), 0);
  EXPECT_EQ(end_error(s), 0);
  ASSERT_EQ(cu.cuThreadExchangeStreamCaptureMode(&mode), 0);
}

TEST_F(Graphs, TheNullStreamMayNotBeUsedWhileABlockingStreamCaptures) {
  void* s = stream();
  begin(s, kThreadLocal);
  EXPECT_EQ(launch(nullptr, kMillisecond), 906);
  EXPECT_EQ(end_error(s), 901);
  begin(s, kRelaxed);
  EXPECT_EQ(launch(nullptr, kMillisecond), 0);
  EXPECT_EQ(end_error(s), 0);
}

TEST_F(Graphs, CaptureStateCanBeAskedFor) {
  void* s = stream();
  int status = -1;
  ASSERT_EQ(cu.cuStreamIsCapturing.legacy(s, &status), 0);
  EXPECT_EQ(status, 0);
  begin(s);
  ASSERT_EQ(launch(s, kMillisecond), 0);
  unsigned long long id = 0;
  void *graph = nullptr, **nodes = nullptr;
  size_t count = 0;
  ASSERT_EQ(cu.cuStreamGetCaptureInfo_v3.legacy(s, &status, &id, &graph, &nodes,
                                                nullptr, &count),
            0);
  EXPECT_EQ(status, 1);
  EXPECT_NE(id, 0u);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(cu.cuStreamBeginCapture_v2.legacy(s, kGlobal), 1) << "twice";
  EXPECT_EQ(end_error(s), 0);
  EXPECT_EQ(end_error(s), 903);
}

}  // namespace
}  // namespace lull::sim
