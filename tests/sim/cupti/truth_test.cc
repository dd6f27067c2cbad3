// Records against the ground-truth log.
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "tests/sim/cupti/cbids.h"
#include "tests/sim/cupti/client_fixture.h"

namespace lull::sim::cupti {
namespace {

constexpr int64_t kSloppy = 20 * kMicro;  // two clocks, read by two parties

int64_t clock_ns(clockid_t clock) {
  timespec ts;
  clock_gettime(clock, &ts);
  return ts.tv_sec * 1'000'000'000 + ts.tv_nsec;
}

// Read until both readings lie close together.
int64_t wall_offset() {
  for (;;) {
    int64_t before = clock_ns(CLOCK_MONOTONIC);
    int64_t wall = clock_ns(CLOCK_REALTIME);
    int64_t after = clock_ns(CLOCK_MONOTONIC);
    if (after - before < kSloppy / 4) return wall - (before + after) / 2;
  }
}

// Correlation ids are unique here: one operation for each call.
template <typename Record>
void expect_same(const std::vector<Record>& records,
                 const std::vector<TruthRecord>& truth) {
  ASSERT_EQ(records.size(), truth.size());
  std::map<uint64_t, TruthRecord> by_correlation;
  for (const TruthRecord& op : truth) by_correlation[op.correlation] = op;
  ASSERT_EQ(by_correlation.size(), truth.size());
  int64_t offset = wall_offset();
  for (const Record& record : records) {
    ASSERT_TRUE(by_correlation.contains(record.correlation));
    const TruthRecord& op = by_correlation[record.correlation];
    EXPECT_EQ(static_cast<int64_t>(record.end - record.start), op.end_ns - op.start_ns);
    EXPECT_NEAR(static_cast<int64_t>(record.start), op.start_ns + offset, kSloppy);
    EXPECT_EQ(record.stream, op.stream);
    EXPECT_EQ(record.device, op.device);
    EXPECT_EQ(record.context, op.parent);
  }
  for (size_t i = 1; i < records.size(); ++i) {
    EXPECT_LE(records[i - 1].end, records[i].end) << "not in the order of completion";
  }
}

TEST(CuptiTruth, KernelRecordsAreTheKernelsOfTheLog) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    void *one = machine.stream(), *other = machine.stream();
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(machine.launch(one, 200 * kMicro), 0);
      ASSERT_EQ(machine.launch(other, (i % 7) * 50 * kMicro), 0);
    }
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto records = client.records<KernelRecord>(kConcurrentKernel);
    expect_same(records, machine.ops(OpKind::kKernel));
    ASSERT_FALSE(records.empty());
    EXPECT_STREQ(records[0].name, "traced_kernel");
    EXPECT_EQ(records[0].grid[1], 3);
    EXPECT_EQ(records[0].block[0], 32);
    EXPECT_EQ(records[0].dynamic_shared, 1024);
    EXPECT_TRUE(client.records<ApiRecord>(kDriver).empty());
  });
}

TEST(CuptiTruth, CopiesAndMemsetsAreThoseOfTheLog) {
  on_machine(12, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kMemcpy), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kMemset), 0);
    uint64_t memory = machine.device_memory(1 << 20);
    std::string host(1 << 20, 'x');
    void* stream = machine.stream();
    ASSERT_EQ(machine.cu.cuMemcpyHtoD_v2.legacy(memory, host.data(), host.size()), 0);
    ASSERT_EQ(machine.cu.cuMemcpyDtoHAsync_v2.legacy(host.data(), memory, 4096, stream),
              0);
    ASSERT_EQ(machine.cu.cuMemsetD8Async.legacy(memory, 7, 4096, stream), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto copies = client.records<MemcpyRecord>(kMemcpy);
    expect_same(copies, machine.ops(OpKind::kCopy));
    ASSERT_EQ(copies.size(), 2u);
    EXPECT_EQ(copies[0].bytes, host.size());
    EXPECT_EQ(copies[0].copy, 1);         // to the device
    EXPECT_EQ(copies[0].source, 1);       // pageable
    EXPECT_EQ(copies[0].destination, 3);  // device
    EXPECT_EQ(copies[1].copy, 2);
    EXPECT_EQ(copies[0].flags, 0);
    EXPECT_EQ(copies[1].flags, 1);  // asynchronous
    auto memsets = client.records<MemsetRecord>(kMemset);
    expect_same(memsets, machine.ops(OpKind::kMemset));
    ASSERT_EQ(memsets.size(), 1u);
    EXPECT_EQ(memsets[0].value, 7u);
  });
}

TEST(CuptiTruth, ApiRecordsAreTheCallsOfTheLogWithTheirThreads) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiSetThreadIdType(1), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    size_t before = machine.calls().size();
    void* stream = machine.stream();
    uint32_t other = 0;
    std::thread([&] {
      other = static_cast<uint32_t>(syscall(SYS_gettid));
      machine.launch(stream, kMicro);
    }).join();
    ASSERT_EQ(machine.launch(stream, kMicro), 0);
    ASSERT_EQ(machine.cu.cuStreamSynchronize.legacy(nullptr), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    auto truth = machine.calls();
    truth.erase(truth.begin(), truth.begin() + static_cast<int64_t>(before));
    auto records = client.records<ApiRecord>(kDriver);
    int64_t offset = wall_offset();
    std::map<uint32_t, ApiRecord> by_correlation;
    for (const ApiRecord& record : records) by_correlation[record.correlation] = record;
    ASSERT_EQ(by_correlation.size(), truth.size());
    int from_other = 0;
    for (const TruthRecord& call : truth) {
      const ApiRecord& record = by_correlation[static_cast<uint32_t>(call.correlation)];
      EXPECT_EQ(record.thread, call.tid);
      // The call ends once its record is written.
      EXPECT_NEAR(static_cast<int64_t>(record.start), call.start_ns + offset, kSloppy);
      EXPECT_LE(static_cast<int64_t>(record.end - record.start),
                call.end_ns - call.start_ns);
      EXPECT_EQ(record.process, static_cast<uint32_t>(getpid()));
      if (record.thread != other) continue;
      ++from_other;
      EXPECT_EQ(record.cbid, driver_cbid("cuLaunchKernel"));
    }
    EXPECT_EQ(from_other, 1);
  });
}

TEST(CuptiTruth, ThreadIdsAreThoseOfPthreadUnlessAskedOtherwise) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(1), 0);
    auto records = client.records<ApiRecord>(kDriver);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].thread, static_cast<uint32_t>(pthread_self()));
  });
}

TEST(CuptiTruth, OperationsCarryTheCorrelationOfTheCallThatAskedForThem) {
  on_machine(13, {}, [](Machine& machine) {
    Client client(machine.cupti, kBuffer);
    for (uint32_t kind : {uint32_t{kDriver}, uint32_t{kConcurrentKernel}}) {
      ASSERT_EQ(machine.cupti.cuptiActivityEnable(kind), 0);
    }
    for (int i = 0; i < 20; ++i) ASSERT_EQ(machine.launch(nullptr, kMicro), 0);
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    std::map<uint32_t, ApiRecord> launches;
    for (const ApiRecord& record : client.records<ApiRecord>(kDriver)) {
      if (record.cbid == driver_cbid("cuLaunchKernel")) {
        launches[record.correlation] = record;
      }
    }
    auto kernels = client.records<KernelRecord>(kConcurrentKernel);
    ASSERT_EQ(kernels.size(), 20u);
    for (const KernelRecord& kernel : kernels) {
      ASSERT_TRUE(launches.contains(kernel.correlation));
      EXPECT_GE(kernel.start, launches[kernel.correlation].start);
    }
  });
}

TEST(CuptiTruth, ObservingChangesNothingInTheLog) {
  auto program = [](Machine& machine) {
    void* stream = machine.stream();
    for (int i = 0; i < 10; ++i) machine.launch(stream, 30 * kMicro);
    machine.launch_graph(kMicro, 2);
    machine.cu.cuCtxSynchronize();
  };
  // Ids of everything, durations of operations: what does not depend on the clock.
  auto digest = [](const Machine& machine) {
    std::vector<uint64_t> ids;
    for (const TruthRecord& call : machine.calls()) ids.push_back(call.correlation);
    for (const TruthRecord& op : machine.ops(OpKind::kKernel)) {
      ids.insert(ids.end(), {op.correlation, op.stream, op.aux,
                             static_cast<uint64_t>(op.end_ns - op.start_ns)});
    }
    return ids;
  };
  constexpr uint64_t kEnd = ~uint64_t{0};
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  for (bool observed : {false, true}) {
    on_machine(13, {}, [&](Machine& machine) {
      Client client(machine.cupti, kBuffer);
      if (observed) {
        for (uint32_t kind : {kConcurrentKernel, kDriver, kSynchronization}) {
          ASSERT_EQ(machine.cupti.cuptiActivityEnable(kind), 0);
        }
      }
      program(machine);
      std::vector<uint64_t> ids = digest(machine);
      ASSERT_EQ(write(pipe_ends[1], ids.data(), ids.size() * 8),
                static_cast<ssize_t>(ids.size() * 8));
      ASSERT_EQ(write(pipe_ends[1], &kEnd, 8), 8);
    });
  }
  std::vector<uint64_t> seen[2];
  for (auto& ids : seen) {
    for (uint64_t id; read(pipe_ends[0], &id, 8) == 8 && id != kEnd;) {
      ids.push_back(id);
    }
  }
  EXPECT_GT(seen[0].size(), 50u);
  EXPECT_EQ(seen[0], seen[1]);
}

}  // namespace
}  // namespace lull::sim::cupti
