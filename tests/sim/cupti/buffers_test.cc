// The client's buffers: when they come back, and what is lost.
#include <signal.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "tests/sim/cupti/client_fixture.h"

namespace lull::sim::cupti {
namespace {

constexpr uint32_t kForced = 1;

// A clock-free wait for what another thread does.
template <typename Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 2'000 && !condition(); ++i) usleep(1'000);
  return condition();
}

size_t dropped(Machine& machine) {
  size_t count = ~size_t{0};
  EXPECT_EQ(machine.cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &count), 0);
  return count;
}

TEST(CuptiBuffers, AFlushReturnsOnlyWhatHasEnded) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    void *quick = machine.stream(), *slow = machine.stream();
    ASSERT_EQ(machine.launch(slow, 400 * kMilli), 0);
    ASSERT_EQ(machine.launch(quick, kMicro), 0);
    ASSERT_EQ(machine.cu.cuStreamSynchronize.legacy(quick), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_EQ(client.records<KernelRecord>(kConcurrentKernel).size(), 1u);
    ASSERT_EQ(machine.cu.cuStreamSynchronize.legacy(slow), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto kernels = client.records<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), 2u);
    // The order is that of completion, not of the launches.
    EXPECT_LT(kernels[1].start, kernels[0].start);
    EXPECT_GT(kernels[1].end, kernels[0].end);
  });
}

TEST(CuptiBuffers, AForcedFlushReturnsUnfinishedKernelsWithoutAnEnd) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    void* stream = machine.stream();
    ASSERT_EQ(machine.launch(stream, 500 * kMilli), 0);
    ASSERT_EQ(machine.launch(stream, kMicro), 0);  // waits behind it
    usleep(1'000);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(kForced), 0);
    auto kernels = client.records<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_NE(kernels[0].start, 0u);
    EXPECT_EQ(kernels[0].end, 0u);
    EXPECT_EQ(kernels[1].start, 0u);
    EXPECT_EQ(kernels[1].end, 0u);
  });
}

TEST(CuptiBuffers, AFullBufferComesBackByItself) {
  on_machine(12, {}, [](Machine& machine) {
    constexpr size_t kSmall = 400;  // ten API records
    Client client(machine.cupti, kSmall);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    for (int i = 0; i < 25; ++i) ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    EXPECT_TRUE(soon([&] { return client.buffers_returned() == 2; }));
    EXPECT_EQ(client.buffers_requested(), 3u);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_EQ(client.buffers_returned(), 3u);
    EXPECT_EQ(client.records<ApiRecord>(kDriver).size(), 25u);
  });
}

TEST(CuptiBuffers, BuffersAreAskedForOnTheThreadOfTheProgram) {
  on_machine(12, {}, [](Machine& machine) {
    Client client(machine.cupti, 400);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    for (int i = 0; i < 25; ++i) ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    for (uint32_t thread : client.requesting_threads()) {
      EXPECT_EQ(thread, static_cast<uint32_t>(getpid()));
    }
  });
}

TEST(CuptiBuffers, From13OnEachThreadFillsItsOwn) {
  for (bool own : {true, false}) {
    on_machine(own ? 13 : 12, {}, [own](Machine& machine) {
      Client client(machine.cupti, kBuffer);
      ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
      for (int i = 0; i < 3; ++i) {
        std::thread([&] { machine.launch(nullptr, kMicro); }).join();
      }
      EXPECT_EQ(client.buffers_requested(), own ? 3u : 1u);
      uint8_t attribute = 7;
      size_t size = sizeof attribute;
      ASSERT_EQ(machine.cupti.cuptiActivityGetAttribute(9, &size, &attribute), 0);
      EXPECT_EQ(attribute, own ? 1 : 0);
    });
  }
}

TEST(CuptiBuffers, APeriodicFlushReturnsFullBuffersAlone) {
  on_machine(12, {}, [](Machine& machine) {
    constexpr size_t kThree = 3 * 208;  // kernel records of 12.8
    Client client(machine.cupti, kThree);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushPeriod(5), 0);
    for (int i = 0; i < 7; ++i) ASSERT_EQ(machine.launch(nullptr, 20 * kMilli), 0);
    // No call from here on: the worker collects what ends.
    EXPECT_TRUE(soon([&] { return client.buffers_returned() == 2; }));
    usleep(100'000);
    EXPECT_EQ(client.buffers_returned(), 2u);
    EXPECT_EQ(client.records<KernelRecord>(kConcurrentKernel).size(), 6u);
  });
}

TEST(CuptiBuffers, ARefusedBufferCostsRecordsThatAreCounted) {
  on_machine(12, {{"LULL_SIM_CUPTI_VERSION", "27"}}, [](Machine& machine) {
    Client client(machine.cupti, 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    for (int i = 0; i < 5; ++i) ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    EXPECT_EQ(dropped(machine), 5u);
    EXPECT_EQ(dropped(machine), 0u) << "reading resets";
  });
}

TEST(CuptiBuffers, ARefusedBufferCrashesOlderVersions) {
  dies_on_machine(SIGABRT, 12, {{"LULL_SIM_CUPTI_VERSION", "26"}},
                  [](Machine& machine) {
                    Client client(machine.cupti, 0);
                    machine.cupti.cuptiActivityEnable(kDriver);
                    machine.cu.cuCtxSynchronize();
                  });
}

TEST(CuptiBuffers, ABufferTooSmallForARecordCostsIt) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, 48);  // an API record fits, a kernel does not
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_EQ(client.records<ApiRecord>(kDriver).size(), 2u);
    EXPECT_TRUE(client.records<KernelRecord>(kConcurrentKernel).empty());
    EXPECT_EQ(dropped(machine), 1u);
  });
}

TEST(CuptiBuffers, TheLastToRegisterGetsEverything) {
  on_machine(13, {}, [](Machine& machine) {
    Client first(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    Client second(machine.cupti, kBuffer);
    ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_TRUE(first.records<KernelRecord>(kConcurrentKernel).empty());
    // Even the buffer that the first one gave.
    EXPECT_EQ(second.records<KernelRecord>(kConcurrentKernel).size(), 2u);
    // What one disables is disabled for the other.
    ASSERT_EQ(machine.cupti.cuptiActivityDisable(kConcurrentKernel), 0);
    ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_EQ(second.records<KernelRecord>(kConcurrentKernel).size(), 2u);
  });
}

TEST(CuptiBuffers, NothingIsLostOrDoubledByManyThreadsThatFlush) {
  on_machine(13, {}, [](Machine& machine) {
    constexpr int kThreads = 6, kLaunches = 300;
    Client client(machine.cupti, 1'000);
    for (uint32_t kind : {kConcurrentKernel, kDriver}) {
      ASSERT_EQ(machine.cupti.cuptiActivityEnable(kind), 0);
    }
    ASSERT_EQ(machine.cupti.cuptiActivityFlushPeriod(1), 0);
    std::vector<std::thread> threads;
    void* stream = machine.stream();
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kLaunches; ++i) {
          EXPECT_EQ(machine.launch(stream, kMicro), 0);
          if (i % 50 == 0) machine.cupti.cuptiActivityFlushAll(0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    std::set<uint32_t> kernels, calls;
    for (const auto& kernel : client.records<KernelRecord>(kConcurrentKernel)) {
      EXPECT_TRUE(kernels.insert(kernel.correlation).second);
    }
    for (const auto& call : client.records<ApiRecord>(kDriver)) {
      EXPECT_TRUE(calls.insert(call.correlation).second);
    }
    EXPECT_EQ(kernels.size(), size_t{kThreads * kLaunches});
    EXPECT_EQ(calls.size(), kernels.size() + 2);
    EXPECT_EQ(client.buffers_requested(), client.buffers_returned());
    EXPECT_EQ(dropped(machine), 0u);
  });
}

TEST(CuptiBuffers, FlushingFromABufferCallbackIsReported) {
  dies_on_machine(SIGABRT, 13, {}, [](Machine& machine) {
    static const Api* api = &machine.cupti;
    static uint8_t bytes[1024] __attribute__((aligned(8)));
    machine.cupti.cuptiActivityRegisterCallbacks(
        [](uint8_t** buffer, size_t* size, size_t* max) {
          *buffer = bytes;
          *size = sizeof bytes;
          *max = 0;
        },
        [](void*, uint32_t, uint8_t*, size_t, size_t) {
          api->cuptiActivityFlushAll(0);
        });
    machine.cupti.cuptiActivityEnable(kDriver);
    machine.cu.cuCtxSynchronize();
    machine.cupti.cuptiActivityFlushAll(0);
  });
}

}  // namespace
}  // namespace lull::sim::cupti
