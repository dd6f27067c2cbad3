// Copies and memsets move real bytes; pointers tell what they are.
#include <cstring>
#include <vector>

#include "tests/sim/driver_fixture.h"

namespace lull::sim {
namespace {

using Memory = DriverTest;

TEST_F(Memory, BringsBackWhatWasCopiedThere) {
  std::vector<char> out(1 << 20), back(1 << 20);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(i * 7);
  uint64_t a = device_memory(out.size()), b = device_memory(out.size());
  ASSERT_EQ(cu.cuMemcpyHtoD_v2.legacy(a, out.data(), out.size()), 0);
  ASSERT_EQ(cu.cuMemcpyDtoD_v2.legacy(b, a, out.size()), 0);
  ASSERT_EQ(cu.cuMemsetD8_v2.legacy(b + 100, 0x5a, 50), 0);
  ASSERT_EQ(cu.cuMemcpyDtoH_v2.legacy(back.data(), b, back.size()), 0);
  std::memset(out.data() + 100, 0x5a, 50);
  EXPECT_EQ(out, back);
}

TEST_F(Memory, ReadsZerosUpToTheSizeThatIsConfigured) {
  configure("zero_reads_kib", "1", "0");
  std::vector<char> out(1025, 3), back(1025, 9);
  uint64_t a = device_memory(out.size());
  ASSERT_EQ(cu.cuMemcpyHtoD_v2.legacy(a, out.data(), out.size()), 0);
  ASSERT_EQ(cu.cuMemcpyDtoH_v2.legacy(back.data(), a, 1024), 0);
  EXPECT_EQ(back, [] {
    std::vector<char> zeros(1025);
    zeros.back() = 9;
    return zeros;
  }());
  ASSERT_EQ(cu.cuMemcpyDtoH_v2.legacy(back.data(), a, 1025), 0);
  EXPECT_EQ(back, out);
}

TEST_F(Memory, SetsRectanglesRowByRow) {
  uint64_t a = device_memory(4096);
  ASSERT_EQ(cu.cuMemsetD8_v2.legacy(a, 0, 4096), 0);
  ASSERT_EQ(cu.cuMemsetD2D8_v2.legacy(a, 64, 9, 3, 2), 0);
  char back[128];
  ASSERT_EQ(cu.cuMemcpyDtoH_v2.legacy(back, a, sizeof back), 0);
  EXPECT_EQ(back[2], 9);
  EXPECT_EQ(back[3], 0);
  EXPECT_EQ(back[64], 9);
  EXPECT_EQ(back[67], 0);
}

TEST_F(Memory, RefusesACopyBeyondTheEndOfAnAllocation) {
  std::vector<char> host(8192);
  uint64_t a = device_memory(4096);
  EXPECT_EQ(cu.cuMemcpyHtoD_v2.legacy(a, host.data(), 4097), 1);
  EXPECT_EQ(cu.cuMemsetD8_v2.legacy(a + 4000, 0, 97), 1);
}

TEST_F(Memory, KnowsDevicePinnedManagedAndForeignPointers) {
  uint64_t managed = 0;
  ASSERT_EQ(cu.cuMemAllocManaged(&managed, 4096, 1), 0);
  std::vector<char> registered(4096);
  ASSERT_EQ(cu.cuMemHostRegister_v2(registered.data(), registered.size(), 0), 0);
  EXPECT_EQ(cu.cuMemHostRegister_v2(registered.data(), 16, 0), 712);
  auto type = [&](uint64_t address) {
    unsigned value = 99;
    const int what[] = {2};
    void* values[] = {&value};
    EXPECT_EQ(cu.cuPointerGetAttributes(1, what, values, address), 0);
    return value;
  };
  int local = 0;
  EXPECT_EQ(type(device_memory(64) + 8), 2u);
  EXPECT_EQ(type(reinterpret_cast<uint64_t>(pinned_memory(64))), 1u);
  EXPECT_EQ(type(managed), 2u);
  EXPECT_EQ(type(reinterpret_cast<uint64_t>(registered.data() + 100)), 1u);
  EXPECT_EQ(type(reinterpret_cast<uint64_t>(&local)), 0u);
  EXPECT_EQ(cu.cuMemHostUnregister(registered.data()), 0);
  EXPECT_EQ(cu.cuMemHostUnregister(registered.data()), 713);
}

TEST_F(Memory, RunsOutWhenTheDeviceIsFull) {
  size_t free_before = 0, total = 0;
  ASSERT_EQ(cu.cuMemGetInfo_v2(&free_before, &total), 0);
  uint64_t most = device_memory(free_before - 4096), more = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&more, 8192), 2);
  ASSERT_EQ(cu.cuMemFree_v2(most), 0);
  size_t free_after = 0;
  ASSERT_EQ(cu.cuMemGetInfo_v2(&free_after, &total), 0);
  EXPECT_EQ(free_after, free_before);
  EXPECT_EQ(cu.cuMemFree_v2(most), 1) << "twice";
}

TEST_F(Memory, CopiesTakeLatencyAndBandwidth) {
  uint64_t a = device_memory(1 << 20);
  void* host = pinned_memory(1 << 20);
  ASSERT_EQ(cu.cuMemcpyHtoDAsync_v2.legacy(a, host, 1'000'000, nullptr), 0);
  ASSERT_EQ(ops().size(), 1u);
  // 1.5 us and 25 GB/s.
  EXPECT_EQ(ops()[0].end_ns - ops()[0].start_ns, 1'500 + 40'000);
}

}  // namespace
}  // namespace lull::sim
