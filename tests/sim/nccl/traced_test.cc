// What a tracer is told of kernels that communicate: what it is told of any other.
#include <dlfcn.h>

#include "tests/sim/cupti/cbids.h"
#include "tests/sim/cupti/client_fixture.h"
#include "tests/sim/nccl/api.h"

namespace lull::sim::cupti {
namespace {

constexpr int kFloat = 7, kSum = 0;

template <typename Function>
Function* find(const char* name) {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return reinterpret_cast<Function*>(dlsym(library, name));
}

TEST(NcclTraced, ItsKernelsAndLaunchesHaveRecordsOfTheirTrueTimes) {
  on_machine(13, {}, [](Machine& machine) {
    void* ranks[2] = {};
    int one_device[2] = {0, 0};
    ASSERT_EQ(
        find<int(void**, int, const int*)>("ncclCommInitAll")(ranks, 2, one_device), 0);
    using AllReduce = int(const void*, void*, size_t, int, int, void*, void*);
    auto* all_reduce = find<AllReduce>("ncclAllReduce");
    Client client(machine.cupti, kBuffer);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kConcurrentKernel), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityEnable(kDriver), 0);
    void* streams[2] = {machine.stream(), machine.stream()};
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(machine.launch(streams[i % 2], 300 * kMicro), 0);
      for (int r = 0; r < 2; ++r) {
        ASSERT_EQ(
            all_reduce(nullptr, nullptr, 1000, kFloat, kSum, ranks[r], streams[r]), 0);
      }
    }
    ASSERT_EQ(machine.cu.cuCtxSynchronize(), 0);
    ASSERT_EQ(machine.cupti.cuptiActivityFlushAll(0), 0);
    std::map<uint64_t, TruthRecord> truth;
    for (const TruthRecord& op : machine.ops(OpKind::kKernel))
      truth[op.correlation] = op;
    ASSERT_EQ(truth.size(), 30u);
    std::map<uint32_t, ApiRecord> launches;
    for (const ApiRecord& call : client.records<ApiRecord>(kDriver)) {
      if (call.cbid == driver_cbid("cuLaunchKernelEx"))
        launches[call.correlation] = call;
    }
    EXPECT_EQ(launches.size(), 20u);
    size_t communicating = 0;
    for (const auto& record : client.records<KernelRecord>(kConcurrentKernel)) {
      ASSERT_TRUE(truth.contains(record.correlation));
      const TruthRecord& op = truth[record.correlation];
      EXPECT_EQ(static_cast<int64_t>(record.end - record.start),
                op.end_ns - op.start_ns);
      EXPECT_EQ(record.stream, op.stream);
      if (std::string(record.name).find("ncclDevKernel_AllReduce") ==
          std::string::npos) {
        continue;
      }
      ++communicating;
      ASSERT_TRUE(launches.contains(record.correlation));
      EXPECT_LT(launches[record.correlation].start, record.start);
    }
    EXPECT_EQ(communicating, 20u);
  });
}

}  // namespace
}  // namespace lull::sim::cupti
