// Clocks that jump, calls that fail, nonsense, and other users of the library.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/sim/cupti/cbids.h"
#include "tests/sim/cupti/client_fixture.h"
#include "tests/sim/engine/clock.h"

namespace lull::sim::cupti {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t wall_ns() {
  timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  return ts.tv_sec * kSecond + ts.tv_nsec;
}

// Expects CUPTI's clock to be `clock` plus `step`.
void expect_clock(Machine& machine, int64_t (*clock)(), int64_t step) {
  uint64_t now = 0;
  int64_t before = clock();
  EXPECT_EQ(machine.cupti.cuptiGetTimestamp(&now), 0);
  EXPECT_LE(before, static_cast<int64_t>(now) - step);
  EXPECT_LE(static_cast<int64_t>(now) - step, clock());
}

// Launches one kernel and returns its record.
KernelRecord trace_one(Machine& machine, const Client& client) {
  EXPECT_EQ(machine.launch(nullptr, kMicro), 0);
  EXPECT_EQ(machine.cu.cuCtxSynchronize(), 0);
  EXPECT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
  auto kernels = client.records<KernelRecord>(kConcurrentKernel);
  EXPECT_FALSE(kernels.empty());
  return kernels.empty() ? KernelRecord{} : kernels.back();
}

TEST(CuptiClock, IsTheWallClock) {
  on_machine(13, {}, [](Machine& machine) { expect_clock(machine, wall_ns, 0); });
}

TEST(CuptiClock, AStepOfTheWallClockShowsInRecordsAndNowhereElse) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    for (int64_t step : {int64_t{0}, -3600 * kSecond, 5 * kSecond}) {
      ASSERT_EQ(machine.set("cupti_clock_step_ns", std::to_string(step).c_str()), 1);
      expect_clock(machine, wall_ns, step);
      int64_t wall = wall_ns(), steady = now_ns();
      KernelRecord kernel = trace_one(machine, client);
      EXPECT_LT(wall + step, static_cast<int64_t>(kernel.start));
      EXPECT_LT(static_cast<int64_t>(kernel.end), wall_ns() + step);
      EXPECT_EQ(kernel.end - kernel.start, static_cast<uint64_t>(kMicro));
      TruthRecord truth = machine.ops(OpKind::kKernel).back();
      EXPECT_LT(steady, truth.start_ns);
      EXPECT_LT(truth.end_ns, now_ns());
    }
  });
}

TEST(CuptiClock, AStepCanBeSetForALaterTime) {
  on_machine(13, {{"LULL_SIM_CUPTI_CLOCK_STEP_NS", "-9000000000@0.5"}},
             [](Machine& machine) {
               expect_clock(machine, wall_ns, 0);
               usleep(500'000);
               expect_clock(machine, wall_ns, -9 * kSecond);
             });
}

TEST(CuptiClock, ACallbackOfAClientSetsTheUnitForEverybody) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    // A counter of 2 per ns that started at an origin of its own, as the TSC does.
    ASSERT_EQ(machine.cupti.cuptiActivityRegisterTimestampCallback(
                  [] { return static_cast<uint64_t>(2 * now_ns() + 12345); }),
              0);
    expect_clock(
        machine, [] { return 2 * now_ns() + 12345; }, 0);
    ASSERT_EQ(machine.launch(nullptr, 10 * kMilli), 0);
    KernelRecord kernel = trace_one(machine, client);
    TruthRecord truth = machine.ops(OpKind::kKernel).back();
    EXPECT_NEAR(static_cast<int64_t>(kernel.start), 2 * truth.start_ns + 12345,
                100 * kMicro);
    auto kernels = client.records<KernelRecord>(kConcurrentKernel);
    EXPECT_NEAR(static_cast<int64_t>(kernels[0].end - kernels[0].start), 20 * kMilli,
                100 * kMicro);
  });
}

TEST(CuptiFailures, ACallFailsWhenTheEnvironmentSaysSo) {
  on_machine(
      13,
      {{"LULL_SIM_CUPTI_FAIL", "cuptiActivityEnable:2:999,cuptiActivityFlushAll:0:15"}},
      [](Machine& machine) {
        EXPECT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
        EXPECT_EQ(machine.cupti.cuptiActivityEnable(kRuntime), 999);
        EXPECT_EQ(machine.cupti.cuptiGetLastError(), 999);
        EXPECT_EQ(machine.cupti.cuptiGetLastError(), 0);
        EXPECT_EQ(machine.cupti.cuptiActivityEnable(kRuntime), 0);
        EXPECT_EQ(machine.cupti.cuptiActivityFlushAll(0), 15);
        EXPECT_EQ(machine.cupti.cuptiActivityFlushAll(0), 15);
      });
}

TEST(CuptiFailures, KindsThatDoNotExistOrExcludeEachOtherAreRefused) {
  on_machine(13, {}, [](Machine& machine) {
    EXPECT_EQ(machine.cupti.cuptiActivityEnable(0), 21);
    EXPECT_EQ(machine.cupti.cuptiActivityEnable(1'000), 21);
    EXPECT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    EXPECT_EQ(machine.cupti.cuptiActivityEnable(kKernel), 14);
    const char* text = nullptr;
    EXPECT_EQ(machine.cupti.cuptiGetResultString(14, &text), 0);
    EXPECT_STREQ(text, "CUPTI_ERROR_NOT_COMPATIBLE");
  });
}

TEST(CuptiFailures, NonsenseComesAsOftenAsAskedFor) {
  on_machine(13, {{"LULL_SIM_CUPTI_GARBAGE", "3"}}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    constexpr size_t kLaunches = 30;
    for (size_t i = 0; i < kLaunches; ++i) {
      ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    }
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto kernels = client.records<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), kLaunches);
    auto count = [&](auto wrong) { return std::ranges::count_if(kernels, wrong); };
    EXPECT_EQ(count([](const KernelRecord& k) { return k.start > k.end; }), 2);
    EXPECT_EQ(count([](const KernelRecord& k) { return k.end == 0; }), 2);
    EXPECT_EQ(count([](const KernelRecord& k) { return k.end > UINT64_MAX / 4; }), 2);
    EXPECT_EQ(count([](const KernelRecord& k) { return k.name == nullptr; }), 2);
    EXPECT_EQ(count([](const KernelRecord& k) { return k.stream == 0xdeadbeef; }), 2);
  });
}

TEST(CuptiFailures, KernelsBeyondTheRoomOnTheDeviceHaveNoTimes) {
  on_machine(13, {{"LULL_SIM_CUPTI_DEVICE_RECORDS", "4"}}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(machine.launch(nullptr, 50 * kMilli), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto kernels = client.records<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), 10u);
    auto lost = std::ranges::count_if(
        kernels, [](const KernelRecord& k) { return k.start == 0 && k.end == 0; });
    EXPECT_EQ(lost, 6);
    size_t dropped = 0;
    machine.cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
    EXPECT_EQ(dropped, 0u);
  });
}

TEST(CuptiUsers, OneSubscriberAtATime) {
  on_machine(13, {}, [](Machine& machine) {
    auto nothing = [](void*, uint32_t, uint32_t, const void*) {};
    void *first = nullptr, *second = nullptr;
    ASSERT_EQ(machine.cupti.cuptiSubscribe(&first, nothing, nullptr), 0);
    EXPECT_EQ(machine.cupti.cuptiSubscribe(&second, nothing, nullptr), 39);
    EXPECT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0) << "needs none";
    ASSERT_EQ(machine.cupti.cuptiUnsubscribe(first), 0);
    EXPECT_EQ(machine.cupti.cuptiSubscribe(&second, nothing, nullptr), 0);
  });
}

TEST(CuptiUsers, ASubscriberIsToldOfTheCallsThatItEnabled) {
  on_machine(13, {}, [](Machine& machine) {
    static int calls;
    static uint32_t cbid;
    void* subscriber = nullptr;
    ASSERT_EQ(machine.cupti.cuptiSubscribe(
                  &subscriber,
                  [](void*, uint32_t, uint32_t id, const void*) {
                    ++calls;
                    cbid = id;
                  },
                  nullptr),
              0);
    uint32_t launch = driver_cbid("cuLaunchKernel");
    constexpr uint32_t kDriverDomain = 1;
    ASSERT_EQ(machine.cupti.cuptiEnableCallback(1, subscriber, kDriverDomain, launch),
              0);
    ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    EXPECT_EQ(calls, 2) << "entering and leaving";
    EXPECT_EQ(cbid, launch);
    const char* name = nullptr;
    ASSERT_EQ(machine.cupti.cuptiGetCallbackName(kDriverDomain, launch, &name), 0);
    EXPECT_STREQ(name, "cuLaunchKernel");
  });
}

struct Params {
  size_t size;
  const char* name;
  char* old_name;
  size_t old_size;
  uint8_t allow_multiple;
};

TEST(CuptiUsers, TheTwoGenerationsOfTheApiExcludeEachOtherFrom13Point3) {
  auto nothing = [](void*, uint32_t, uint32_t, const void*) {};
  Params params{sizeof(Params), "monitor", nullptr, 0, 1};
  on_machine(13, {{"LULL_SIM_CUPTI_VERSION", "130300"}}, [&](Machine& machine) {
    void* subscriber = nullptr;
    ASSERT_EQ(machine.cupti.cuptiSubscribe_v2(&subscriber, nothing, nullptr, &params),
              0);
    EXPECT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 39);
  });
  on_machine(13, {{"LULL_SIM_CUPTI_VERSION", "130300"}}, [&](Machine& machine) {
    void* subscriber = nullptr;
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    EXPECT_EQ(machine.cupti.cuptiSubscribe_v2(&subscriber, nothing, nullptr, &params),
              39);
  });
  on_machine(13, {}, [&](Machine& machine) {
    void* subscriber = nullptr;
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    EXPECT_EQ(machine.cupti.cuptiSubscribe_v2(&subscriber, nothing, nullptr, &params),
              0);
    char holder[64] = "";
    Params second{sizeof(Params), "late", holder, sizeof holder, 0};
    EXPECT_EQ(machine.cupti.cuptiSubscribe_v2(&subscriber, nothing, nullptr, &second),
              39);
    EXPECT_STREQ(holder, "CUPTI for monitor");
  });
  on_machine(12, {}, [&](Machine& machine) {
    EXPECT_EQ(machine.cupti.cuptiSubscribe_v2, nullptr);
  });
}

TEST(CuptiUsers, FinalizingEndsTracingUntilSomebodyEnablesAgain) {
  on_machine(13, {}, [](Machine& machine) {
    {
      Client client(machine.cupti, kBuffer);
      ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
      ASSERT_EQ(machine.cupti.cuptiFinalize(), 0);
      ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
      ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
      EXPECT_EQ(client.buffers_requested(), 0u);
    }
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    trace_one(machine, client);
    EXPECT_EQ(client.records<KernelRecord>(kConcurrentKernel).size(), 1u);
  });
}

TEST(CuptiUsers, FinalizingWaitsForAllThatDevicesHaveToDo) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    ASSERT_EQ(machine.launch(machine.stream(), 30 * kMilli), 0);
    ASSERT_EQ(machine.cupti.cuptiFinalize(), 0);
    EXPECT_LE(machine.ops(OpKind::kKernel).back().end_ns, now_ns());
  });
}

TEST(CuptiUsers, AForkChildStartsWithoutTracing) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    pid_t child = fork();
    if (child == 0) {
      bool quiet = machine.cu.cuCtxSynchronize() == 3 &&
                   machine.cupti.cuptiActivityFlushAll(1) == 0 &&
                   client.buffers_returned() == 0;
      _exit(quiet ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_EQ(client.records<ApiRecord>(kDriver).size(), 1u);
  });
}

}  // namespace
}  // namespace lull::sim::cupti
