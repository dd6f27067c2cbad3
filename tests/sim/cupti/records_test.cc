// Which records there are, in which layout, and what they say.
#include <dlfcn.h>
#include <signal.h>

#include <algorithm>

#include "tests/sim/cupti/cbids.h"
#include "tests/sim/cupti/client_fixture.h"

namespace lull::sim::cupti {
namespace {

constexpr int kNotReady = 600;

void enable(Machine& machine, std::initializer_list<uint32_t> kinds) {
  for (uint32_t kind : kinds) ASSERT_EQ(machine.cupti.cuptiActivityEnable(kind), 0);
}

struct VersionSizes {
  const char* version;
  int major;
  size_t kernel, memcpy, memset, sync, event, graph;
};

class CuptiVersions : public testing::TestWithParam<VersionSizes> {};

TEST_P(CuptiVersions, LayOutTheirRecords) {
  const VersionSizes& expected = GetParam();
  on_machine(expected.major, {{"LULL_SIM_CUPTI_VERSION", expected.version}},
             [&](Machine& machine) {
               uint32_t version = 0;
               ASSERT_EQ(machine.cupti.cuptiGetVersion(&version), 0);
               EXPECT_EQ(std::to_string(version), expected.version);
               Client client(machine.cupti, kBuffer);
               enable(machine, {kConcurrentKernel, kMemcpy, kMemset, kSynchronization,
                                kCudaEvent, kDriver});
               uint64_t memory = machine.device_memory(64);
               void *stream = machine.stream(), *event = nullptr;
               ASSERT_EQ(machine.cu.cuEventCreate(&event, 0), 0);
               ASSERT_EQ(machine.launch(stream, kMicro), 0);
               ASSERT_EQ(
                   machine.cu.cuMemcpyDtoDAsync_v2.legacy(memory, memory, 32, stream),
                   0);
               ASSERT_EQ(machine.cu.cuMemsetD8Async.legacy(memory, 0, 64, stream), 0);
               ASSERT_EQ(machine.cu.cuEventRecordWithFlags.legacy(event, stream, 0), 0);
               ASSERT_EQ(machine.cu.cuStreamSynchronize.legacy(stream), 0);
               enable(machine, {kGraphTrace});
               machine.launch_graph(kMicro, 1);
               ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
               ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
               EXPECT_EQ(client.sizes(kConcurrentKernel), std::vector{expected.kernel});
               EXPECT_EQ(client.sizes(kMemcpy), std::vector{expected.memcpy});
               EXPECT_EQ(client.sizes(kMemset), std::vector{expected.memset});
               EXPECT_EQ(client.sizes(kCudaEvent), std::vector{expected.event});
               EXPECT_EQ(client.sizes(kGraphTrace), std::vector{expected.graph});
               ASSERT_FALSE(client.sizes(kSynchronization).empty());
               EXPECT_EQ(client.sizes(kSynchronization)[0], expected.sync);
               ASSERT_FALSE(client.sizes(kDriver).empty());
               EXPECT_EQ(client.sizes(kDriver)[0], 40u);
             });
}

INSTANTIATE_TEST_SUITE_P(
    Of, CuptiVersions,
    testing::Values(VersionSizes{"18", 12, 200, 88, 88, 40, 24, 48},
                    VersionSizes{"19", 12, 208, 88, 88, 40, 24, 48},
                    VersionSizes{"26", 12, 208, 96, 88, 56, 56, 56},
                    VersionSizes{"27", 12, 208, 96, 88, 56, 56, 56},
                    VersionSizes{"130000", 13, 216, 96, 88, 56, 56, 56},
                    VersionSizes{"130001", 13, 216, 96, 88, 56, 56, 56}),
    [](const auto& info) { return std::string("Version") + info.param.version; });

// As on an H100 and an H200 with CUPTI 13.0.1.
TEST(CuptiRecords, AGraphFromBeforeItIsTracedEndsTheProgram) {
  dies_on_machine(SIGSEGV, 13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    const auto& cu = machine.cu;
    void *where = machine.stream(), *graph = nullptr, *exec = nullptr;
    cu.cuStreamBeginCapture_v2.legacy(where, 0);
    machine.launch(where, kMicro);
    cu.cuStreamEndCapture.legacy(where, &graph);
    cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    machine.cupti.cuptiActivityEnable(kGraphTrace);
    cu.cuGraphLaunch.legacy(exec, where);
  });
}

TEST(CuptiRecords, AGraphIsItsNodesOrOneRecordForEachLaunch) {
  for (bool whole : {false, true}) {
    on_machine(13, {}, [whole](Machine& machine) {
      Client client(machine.cupti, kBuffer);
      enable(machine, {kConcurrentKernel, kDriver});
      if (whole) enable(machine, {kGraphTrace});
      machine.launch_graph(10 * kMicro, 2);
      ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
      ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
      ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
      auto kernels = client.records<KernelRecord>(kConcurrentKernel);
      auto graphs = client.records<GraphRecord>(kGraphTrace);
      auto truth = machine.ops(OpKind::kKernel);
      ASSERT_EQ(truth.size(), 7u);
      std::vector<uint32_t> launches;
      for (const ApiRecord& call : client.records<ApiRecord>(kDriver)) {
        if (call.cbid == driver_cbid("cuGraphLaunch")) {
          launches.push_back(call.correlation);
        }
      }
      ASSERT_EQ(launches.size(), 2u);
      if (whole) {
        ASSERT_EQ(kernels.size(), 1u);
        EXPECT_EQ(kernels[0].graph, 0u);
        ASSERT_EQ(graphs.size(), 2u);
        for (int i : {0, 1}) {
          EXPECT_EQ(graphs[i].correlation, launches[i]);
          EXPECT_EQ(graphs[i].graph, truth[0].aux);
          EXPECT_EQ(static_cast<int64_t>(graphs[i].end - graphs[i].start),
                    truth[3 * i + 2].end_ns - truth[3 * i].start_ns);
        }
        return;
      }
      EXPECT_TRUE(graphs.empty());
      ASSERT_EQ(kernels.size(), 7u);
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(kernels[i].graph, truth[0].aux);
        EXPECT_EQ(kernels[i].correlation, launches[i / 3]);
        EXPECT_EQ(kernels[i].graph_node, kernels[i % 3].graph_node);
      }
      EXPECT_NE(kernels[0].graph_node, kernels[1].graph_node);
      EXPECT_EQ(kernels[6].graph_node, 0u);
    });
  }
}

TEST(CuptiRecords, SynchronisationSaysWhatWasWaitedForAndHowLong) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    enable(machine, {kSynchronization});
    void *one = machine.stream(), *other = machine.stream(), *event = nullptr;
    uint32_t one_id = 0;
    ASSERT_EQ(machine.cupti.cuptiGetStreamIdEx(nullptr, one, 0, &one_id), 0);
    ASSERT_EQ(machine.cu.cuEventCreate(&event, 0), 0);
    ASSERT_EQ(machine.launch(one, 200 * kMilli), 0);
    ASSERT_EQ(machine.cu.cuEventRecordWithFlags.legacy(event, one, 0), 0);
    ASSERT_EQ(machine.cu.cuEventQuery(event), kNotReady);
    ASSERT_EQ(machine.cu.cuStreamWaitEvent.legacy(other, event, 0), 0);
    ASSERT_EQ(machine.cu.cuStreamSynchronize.legacy(one), 0);
    ASSERT_EQ(machine.cu.cuEventSynchronize(event), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnableAllSyncRecords(0), 0);
    ASSERT_EQ(machine.launch(one, 200 * kMilli), 0);
    ASSERT_EQ(machine.cu.cuStreamQuery.legacy(one), kNotReady);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto records = client.records<SyncRecord>(kSynchronization);
    ASSERT_EQ(records.size(), 5u);
    constexpr uint32_t kEvent = 1, kWaitEvent = 2, kStream = 3, kContext = 4;
    uint32_t types[] = {kEvent, kWaitEvent, kStream, kEvent, kContext};
    for (int i = 0; i < 5; ++i) EXPECT_EQ(records[i].type, types[i]) << i;
    EXPECT_EQ(records[0].result, static_cast<uint32_t>(kNotReady));
    EXPECT_EQ(records[2].stream, one_id);
    EXPECT_EQ(records[2].event, ~0u);
    EXPECT_EQ(records[4].stream, ~0u);
    EXPECT_GT(records[2].end - records[2].start, 10u * kMilli);
    EXPECT_LT(records[1].end - records[1].start, 10u * kMilli);
    EXPECT_EQ(records[1].event, records[3].event);
    EXPECT_EQ(records[1].event_record, records[3].event_record);
    EXPECT_NE(records[1].event_record, 0u);
  });
}

TEST(CuptiRecords, Version13WithoutUpdateForgetsSynchronisationOfTheContext) {
  on_machine(13, {{"LULL_SIM_CUPTI_VERSION", "130000"}}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    enable(machine, {kSynchronization});
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cu.cuStreamSynchronize.legacy(nullptr), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_EQ(client.records<SyncRecord>(kSynchronization).size(), 1u);
  });
}

TEST(CuptiRecords, EventsAndSynchronisationWereOneSwitchBefore12Point9) {
  for (bool apart : {false, true}) {
    on_machine(
        12, {{"LULL_SIM_CUPTI_VERSION", apart ? "27" : "26"}},
        [apart](Machine& machine) {
          Client client(machine.cupti, kBuffer);
          enable(machine, {kSynchronization});
          void* event = nullptr;
          ASSERT_EQ(machine.cu.cuEventCreate(&event, 0), 0);
          ASSERT_EQ(machine.cu.cuEventRecordWithFlags.legacy(event, nullptr, 0), 0);
          ASSERT_EQ(machine.cu.cuEventSynchronize(event), 0);
          ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
          EXPECT_EQ(client.records<EventRecord>(kCudaEvent).size(), apart ? 0u : 1u);
        });
  }
}

TEST(CuptiRecords, ACallOfTheRuntimeHasOneRecordAndItsOperationTheSameCorrelation) {
  on_machine(13, {}, [](Machine& machine) {
    void* runtime = dlopen("libcudart.so.13", RTLD_NOW);
    ASSERT_NE(runtime, nullptr);
    auto malloc_on_device =
        reinterpret_cast<int (*)(void**, size_t)>(dlsym(runtime, "cudaMalloc"));
    auto set = reinterpret_cast<int (*)(void*, int, size_t, void*)>(
        dlsym(runtime, "cudaMemsetAsync"));
    Client client(machine.cupti, kBuffer);
    enable(machine, {kRuntime, kDriver, kMemset});
    void* memory = nullptr;
    ASSERT_EQ(malloc_on_device(&memory, 4096), 0);
    ASSERT_EQ(set(memory, 1, 4096, nullptr), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto calls = client.records<ApiRecord>(kRuntime);
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].cbid, runtime_cbid("cudaMalloc"));
    EXPECT_EQ(calls[1].cbid, runtime_cbid("cudaMemsetAsync"));
    auto memsets = client.records<MemsetRecord>(kMemset);
    ASSERT_EQ(memsets.size(), 1u);
    EXPECT_EQ(memsets[0].correlation, calls[1].correlation);
    // Of the driver's functions only the one that the program called itself.
    auto driver_calls = client.records<ApiRecord>(kDriver);
    ASSERT_EQ(driver_calls.size(), 1u);
    EXPECT_EQ(driver_calls[0].cbid, driver_cbid("cuCtxSynchronize"));
  });
}

TEST(CuptiRecords, SingleFunctionsCanBeTracedOrLeftOut) {
  on_machine(13, {}, [](Machine& machine) {
    void* runtime = dlopen("libcudart.so.13", RTLD_NOW);
    auto version = reinterpret_cast<int (*)(int*)>(dlsym(runtime, "cudaGetDevice"));
    auto synchronize =
        reinterpret_cast<int (*)()>(dlsym(runtime, "cudaDeviceSynchronize"));
    Client client(machine.cupti, kBuffer);
    int value;
    auto traced = [&] {
      version(&value);
      synchronize();
      machine.cupti.cuptiActivityFlushAll(0);
      std::vector<uint32_t> ids;
      for (const ApiRecord& call : client.records<ApiRecord>(kRuntime)) {
        ids.push_back(call.cbid);
      }
      return ids;
    };
    uint32_t first = runtime_cbid("cudaGetDevice");
    uint32_t second = runtime_cbid("cudaDeviceSynchronize");
    ASSERT_EQ(machine.cupti.cuptiActivityEnableRuntimeApi(second, 1), 0);
    EXPECT_EQ(traced(), (std::vector{second}));
    enable(machine, {kRuntime});
    EXPECT_EQ(traced(), (std::vector{second, first, second}));
    ASSERT_EQ(machine.cupti.cuptiActivityEnableRuntimeApi(first, 0), 0);
    EXPECT_EQ(traced(), (std::vector{second, first, second, second}));
  });
}

TEST(CuptiRecords, ExternalIdsPrecedeTheCallThatTheyBelongTo) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    enable(machine, {kExternalCorrelation, kDriver, kRuntime});
    constexpr uint32_t kCustom = 4;
    ASSERT_EQ(machine.cupti.cuptiActivityPushExternalCorrelationId(kCustom, 11), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityPushExternalCorrelationId(kCustom, 22), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    uint64_t last = 0;
    ASSERT_EQ(machine.cupti.cuptiActivityPopExternalCorrelationId(kCustom, &last), 0);
    EXPECT_EQ(last, 22u);
    ASSERT_EQ(machine.cupti.cuptiActivityPopExternalCorrelationId(kCustom, &last), 0);
    EXPECT_EQ(machine.cupti.cuptiActivityPopExternalCorrelationId(kCustom, &last), 18);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto calls = client.records<ApiRecord>(kDriver);
    auto external = client.records<ExternalRecord>(kExternalCorrelation);
    ASSERT_EQ(calls.size(), 2u);
    ASSERT_EQ(external.size(), 1u);
    EXPECT_EQ(external[0].external, 22u);
    EXPECT_EQ(external[0].external_kind, kCustom);
    EXPECT_EQ(external[0].correlation, calls[0].correlation);
  });
}

TEST(CuptiRecords, OverheadTellsOfFullQueuesAndOfFlushes) {
  on_machine(13, {}, [](Machine& machine) {
    ASSERT_EQ(machine.set("queue_depth", "1"), 1);
    Client client(machine.cupti, kBuffer);
    enable(machine, {kOverhead});
    for (int i = 0; i < 2; ++i) ASSERT_EQ(machine.launch(nullptr, 800 * kMilli), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto records = client.records<OverheadRecord>(kOverhead);
    ASSERT_EQ(records.size(), 2u);
    constexpr uint32_t kFull = 6 << 16, kFlush = 1 << 16;
    EXPECT_EQ(records[0].overhead, kFull);
    EXPECT_GT(records[0].end - records[0].start, 1u * kMilli);
    EXPECT_EQ(records[1].overhead, kFlush);
  });
}

TEST(CuptiRecords, CopiesBetweenDevicesAreOfAnotherKind) {
  on_machine(13, {{"LULL_SIM_CONFIG", "devices=2"}}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    enable(machine, {kMemcpy});
    uint64_t here = machine.device_memory(64);
    void* other = nullptr;
    ASSERT_EQ(machine.cu.cuDevicePrimaryCtxRetain(&other, 1), 0);
    ASSERT_EQ(machine.cu.cuCtxSetCurrent(other), 0);
    uint64_t there = machine.device_memory(64);
    ASSERT_EQ(machine.cu.cuMemcpyPeer(there, nullptr, here, nullptr, 64), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    EXPECT_TRUE(client.records<MemcpyRecord>(kMemcpy).empty());
    auto copies = client.records<PeerRecord>(kMemcpy2);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].source_device, 0u);
    EXPECT_EQ(copies[0].destination_device, 1u);
    EXPECT_EQ(copies[0].copy, 10);
  });
}

TEST(CuptiRecords, WhoComesLateAsksForWhatExists) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnableAndDump(kContext), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnableAndDump(kDevice), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto contexts = client.records<ContextRecord>(kContext);
    auto devices = client.records<DeviceRecord>(kDevice);
    ASSERT_EQ(contexts.size(), 1u);
    ASSERT_EQ(devices.size(), 1u);
    uint32_t context = 0, device = 7;
    ASSERT_EQ(machine.cupti.cuptiGetContextId(nullptr, &context), 0);
    ASSERT_EQ(machine.cupti.cuptiGetDeviceId(nullptr, &device), 0);
    EXPECT_EQ(contexts[0].context, context);
    EXPECT_EQ(device, 0u);
    EXPECT_STREQ(devices[0].name, "Lull Simulated Device");
    EXPECT_EQ(devices[0].multiprocessors, 132u);
  });
}

}  // namespace
}  // namespace lull::sim::cupti
