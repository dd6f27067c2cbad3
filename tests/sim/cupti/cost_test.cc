// What tracing costs the program's calls: as configured, and nothing beside.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>

#include "tests/sim/cupti/client_fixture.h"
#include "tests/sim/engine/clock.h"

namespace lull::sim::cupti {
namespace {

int64_t shortest_launch(Machine& machine) {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    int64_t start = now_ns();
    machine.launch(nullptr, 0);
    best = std::min(best, now_ns() - start);
  }
  return best;
}

TEST(CuptiCost, ATracedCallTakesLongerAsConfigured) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.set("cupti_launch_ns", "3000000"), 1);
    EXPECT_LT(shortest_launch(machine), 3 * kMilli);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    EXPECT_GE(shortest_launch(machine), 3 * kMilli);
    ASSERT_EQ(machine.cupti.cuptiActivityDisable(kConcurrentKernel), 0);
    EXPECT_LT(shortest_launch(machine), 3 * kMilli);
  });
}

TEST(CuptiCost, OfAFunctionThatIsSwitchedOffIsNone) {
  on_machine(13, {}, [](Machine& machine) {
    constexpr uint32_t kLaunchKernel = 307;
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.set("cupti_launch_ns", "3000000"), 1);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    EXPECT_GE(shortest_launch(machine), 3 * kMilli);
    ASSERT_EQ(machine.cupti.cuptiActivityEnableDriverApi(kLaunchKernel, 0), 0);
    EXPECT_LT(shortest_launch(machine), 3 * kMilli);
  });
}

TEST(CuptiCost, MayStayUntilCuptiIsFinalised) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.set("cupti_stays_ns", "3000000"), 1);
    EXPECT_LT(shortest_launch(machine), 3 * kMilli);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityDisable(kConcurrentKernel), 0);
    EXPECT_GE(shortest_launch(machine), 3 * kMilli);
    ASSERT_EQ(machine.cupti.cuptiFinalize(), 0);
    EXPECT_LT(shortest_launch(machine), 3 * kMilli);
  });
}

// Counts of what the library is told, and not times: nothing of it may be left in the
// program's calls.
TEST(CuptiCost, NothingLooksAtCallsOnceAllIsSwitchedOff) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    const auto& cupti = machine.cupti;
    EXPECT_FALSE(machine.observed());
    for (uint32_t kind : {kDriver, kRuntime, kConcurrentKernel, kSynchronization}) {
      ASSERT_EQ(cupti.cuptiActivityEnable(kind), 0);
      EXPECT_TRUE(machine.observed());
    }
    ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(16, 0), 0);
    ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    for (uint32_t kind : {kSynchronization, kConcurrentKernel, kRuntime, kDriver}) {
      EXPECT_TRUE(machine.observed());
      ASSERT_EQ(cupti.cuptiActivityDisable(kind), 0);
    }
    ASSERT_EQ(cupti.cuptiActivityFlushPeriod(100), 0);
    EXPECT_FALSE(machine.observed());
    ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(16, 1), 0);
    EXPECT_TRUE(machine.observed());
    ASSERT_EQ(cupti.cuptiActivityEnableDriverApi(16, 0), 0);
    EXPECT_FALSE(machine.observed());
  });
}

TEST(CuptiCost, ASubscriberIsToldOnlyOfWhatItEnabled) {
  on_machine(13, {}, [](Machine& machine) {
    auto nothing = [](void*, uint32_t, uint32_t, const void*) {};
    const auto& cupti = machine.cupti;
    void* subscriber = nullptr;
    ASSERT_EQ(cupti.cuptiSubscribe(&subscriber, nothing, nullptr), 0);
    EXPECT_FALSE(machine.observed());
    for (uint32_t on : {1, 0, 1}) {
      ASSERT_EQ(cupti.cuptiEnableCallback(on, subscriber, 1, 307), 0);
      EXPECT_EQ(machine.observed(), on == 1);
    }
    ASSERT_EQ(cupti.cuptiUnsubscribe(subscriber), 0);
    EXPECT_FALSE(machine.observed());
  });
}

TEST(CuptiCost, AGraphThatWasBegunIsSeenToItsEnd) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    const auto& cu = machine.cu;
    void *where = machine.stream(), *graph = nullptr, *exec = nullptr;
    ASSERT_EQ(cu.cuStreamBeginCapture_v2.legacy(where, 0), 0);
    ASSERT_EQ(machine.launch(where, kMicro), 0);
    static std::atomic<bool> go_on{false};
    auto wait = [](void*) {
      while (!go_on) usleep(1'000);
    };
    ASSERT_EQ(cu.cuLaunchHostFunc.legacy(where, wait, nullptr), 0);
    ASSERT_EQ(machine.launch(where, kMicro), 0);
    ASSERT_EQ(cu.cuStreamEndCapture.legacy(where, &graph), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kGraphTrace), 0);
    ASSERT_EQ(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    ASSERT_EQ(cu.cuGraphLaunch.legacy(exec, where), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityDisable(kGraphTrace), 0);
    EXPECT_TRUE(machine.observed());
    go_on = true;
    ASSERT_EQ(cu.cuCtxSynchronize(), 0);
    EXPECT_FALSE(machine.observed());
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_EQ(client.records<GraphRecord>(kGraphTrace).size(), 1U);
  });
}

TEST(CuptiCost, OfAFlushIsAsConfigured) {
  on_machine(13, {{"LULL_SIM_CUPTI_FLUSH_US", "4000"}}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    int64_t start = now_ns();
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_GE(now_ns() - start, 4 * kMilli);
  });
}

}  // namespace
}  // namespace lull::sim::cupti
