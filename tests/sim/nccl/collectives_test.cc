// What the kernels of ranks have in common, and what each has for itself.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "tests/sim/nccl/ranks_fixture.h"

namespace lull::sim::nccl {
namespace {

using Nccl = RanksTest;

TEST_F(Nccl, SaysWhatItIs) {
  int version = 0;
  ASSERT_EQ(nccl.ncclGetVersion(&version), 0);
  EXPECT_EQ(version / 100, 227);
  EXPECT_STREQ(nccl.ncclGetErrorString(5), "invalid usage");
  EXPECT_EQ(nccl.ncclMemAlloc(nullptr, 0), 5);
  auto all = ranks(3);
  int count = 0, rank = -1, device = -1;
  EXPECT_EQ(nccl.ncclCommCount(all[2], &count), 0);
  EXPECT_EQ(nccl.ncclCommUserRank(all[2], &rank), 0);
  EXPECT_EQ(nccl.ncclCommCuDevice(all[2], &device), 0);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(device, 0);
}

TEST_F(Nccl, AKernelBeginsInItsStreamsTurnAndEndsOnAllRanksTogether) {
  auto all = ranks(2);
  ASSERT_EQ(launch(streams_[0], kMillisecond), 0);
  ASSERT_EQ(launch(streams_[1], 5 * kMillisecond), 0);
  EXPECT_EQ(blocked([&] { return all_reduce(all[0], streams_[0], 1'000'000); }), 0);
  EXPECT_EQ(cu.cuStreamQuery.legacy(streams_[0]), 600);
  EXPECT_EQ(blocked([&] { return all_reduce(all[1], streams_[1], 1'000'000); }), 0);
  ASSERT_EQ(launch(streams_[0], kMillisecond), 0);
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  auto found = exchanges();
  ASSERT_EQ(found.size(), 2u);
  auto done = kernels();
  ASSERT_EQ(done.size(), 5u);
  EXPECT_EQ(found[0].start_ns, done[0].end_ns);
  EXPECT_EQ(found[1].start_ns, done[1].end_ns);
  EXPECT_EQ(found[0].end_ns, found[1].end_ns);
  EXPECT_EQ(found[1].end_ns - found[1].start_ns,
            takes(4e6));  // 2 * (2 - 1) / 2 of them
  EXPECT_EQ(done[4].start_ns, found[0].end_ns);
  EXPECT_EQ(
      text(done[2].name),
      "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096"
      "EE");
  EXPECT_EQ(done[2].bytes, 4'000'000u);
  EXPECT_EQ(done[2].correlation, found[0].correlation);
  EXPECT_EQ(found[0].handle, found[1].handle);
  EXPECT_EQ(found[0].extra, 0);
  EXPECT_EQ(found[1].sub, 1);
  EXPECT_EQ(text(found[0].name), "0,1");
  EXPECT_EQ(text(found[0].grid), "AllReduce");
}

TEST_F(Nccl, AGroupIsOneKernelLaunchedAtItsEnd) {
  auto all = ranks(2);
  ASSERT_EQ(nccl.ncclGroupStart(), 0);
  for (size_t r : {0, 1}) {
    ASSERT_EQ(nccl.ncclGroupStart(), 0);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(all_reduce(all[r], streams_[r]), 0);
    ASSERT_EQ(nccl.ncclGroupEnd(), 0);
  }
  EXPECT_TRUE(kernels().empty());
  EXPECT_TRUE(exchanges().empty());
  ASSERT_EQ(nccl.ncclGroupEnd(), 0);
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  auto found = exchanges();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].aux, 3u);
  EXPECT_EQ(found[0].bytes, 12'000u);
  EXPECT_EQ(text(found[0].grid), "AllReduce,AllReduce,AllReduce");
  EXPECT_EQ(nccl.ncclGroupEnd(), 5);
}

TEST_F(Nccl, KernelsOfOneRankComeOneByOneOnWhateverStreams) {
  auto all = ranks(2);
  void* other = stream(false);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(all_reduce(all[0], i % 2 == 0 ? streams_[0] : other), 0);
  }
  for (int i = 0; i < 20; ++i) ASSERT_EQ(all_reduce(all[1], streams_[1]), 0);
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  std::map<int64_t, std::vector<TruthRecord>> by_sequence;
  for (const TruthRecord& record : exchanges())
    by_sequence[record.extra].push_back(record);
  ASSERT_EQ(by_sequence.size(), 20u);
  int64_t before = 0;
  for (const auto& [sequence, two] : by_sequence) {
    ASSERT_EQ(two.size(), 2u);
    EXPECT_EQ(two[0].end_ns, two[1].end_ns);
    EXPECT_GE(std::min(two[0].start_ns, two[1].start_ns), before);
    before = two[0].end_ns;
  }
}

TEST_F(Nccl, EachCallHasItsKernelAndItsTime) {
  auto all = ranks(4);
  using Do = std::function<int(size_t)>;
  struct Case {
    const char* kernel;
    double moved;
    Do call;
  };
  const Case cases[] = {
      {"_Z31ncclDevKernel_AllGather_RING_LL24", 3 * 4e5,
       [&](size_t r) {
         return nccl.ncclAllGather(nullptr, nullptr, 100'000, kFloat, all[r],
                                   streams_[r]);
       }},
      {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 3 * 4e5,
       [&](size_t r) {
         return nccl.ncclReduceScatter(nullptr, nullptr, 100'000, kFloat, kSum, all[r],
                                       streams_[r]);
       }},
      {"ncclDevKernel_Broadcast_RING_LL", 4e5,
       [&](size_t r) {
         return nccl.ncclBroadcast(nullptr, nullptr, 100'000, kFloat, 0, all[r],
                                   streams_[r]);
       }},
  };
  for (const Case& one : cases) {
    size_t before = exchanges().size();
    for (size_t r = 0; r < 4; ++r) ASSERT_EQ(one.call(r), 0);
    ASSERT_EQ(cu.cuCtxSynchronize(), 0);
    auto found = exchanges();
    found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(before));
    ASSERT_EQ(found.size(), 4u);
    int64_t latest = 0;
    for (const TruthRecord& record : found) latest = std::max(latest, record.start_ns);
    for (const TruthRecord& record : found) {
      EXPECT_EQ(record.end_ns, latest + takes(one.moved)) << one.kernel;
      EXPECT_NE(text(record.tid).find(one.kernel), std::string::npos)
          << text(record.tid);
    }
  }
  EXPECT_EQ(nccl.ncclBroadcast(nullptr, nullptr, 1, kFloat, 4, all[0], streams_[0]), 4);
}

TEST_F(Nccl, LittleBytesAreMovedWhereNothingIsComputed) {
  auto all = ranks(3);
  constexpr int kInt32 = 2;
  std::vector<std::vector<int>> gathered(3, std::vector<int>(6)), told(3);
  for (int round = 0; round < 10; ++round) {
    for (int r = 0; r < 3; ++r) {
      auto at = static_cast<size_t>(r);
      std::vector<int> mine = {10 * round + r, r};
      told[at] = mine;
      ASSERT_EQ(nccl.ncclGroupStart(), 0);
      ASSERT_EQ(nccl.ncclAllGather(told[at].data(), gathered[at].data(), 2, kInt32,
                                   all[at], streams_[at]),
                0);
      ASSERT_EQ(nccl.ncclBroadcast(told[at].data(), told[at].data(), 2, kInt32, 2,
                                   all[at], streams_[at]),
                0);
      ASSERT_EQ(nccl.ncclGroupEnd(), 0);
    }
    ASSERT_EQ(cu.cuCtxSynchronize(), 0);
    std::vector<int> everything = {10 * round, 0, 10 * round + 1, 1, 10 * round + 2, 2};
    for (size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(gathered[r], everything);
      EXPECT_EQ(told[r], (std::vector<int>{10 * round + 2, 2}));
    }
  }
}

TEST_F(Nccl, MessagesWaitForTheirOtherSideAlone) {
  auto all = ranks(3);
  ASSERT_EQ(launch(streams_[1], 3 * kMillisecond), 0);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(nccl.ncclSend(nullptr, 1000, kFloat, 1, all[0], streams_[0]), 0);
  }
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(nccl.ncclRecv(nullptr, 1000, kFloat, 0, all[1], streams_[1]), 0);
  }
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);  // rank 2 need not come
  auto found = exchanges();
  ASSERT_EQ(found.size(), 20u);
  std::vector<int64_t> ends[2];
  for (const TruthRecord& record : found) {
    EXPECT_EQ(record.extra, -1);
    ends[record.sub].push_back(record.end_ns);
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_NE(text(found[0].tid).find("22ncclDevKernel_SendRecv24"), std::string::npos);
}

TEST_F(Nccl, AnExchangeOfAllWithAllIsAGroupOfMessages) {
  auto all = ranks(3);
  for (size_t r = 0; r < 3; ++r) {
    ASSERT_EQ(nccl.ncclGroupStart(), 0);
    for (int other = 0; other < 3; ++other) {
      ASSERT_EQ(nccl.ncclSend(nullptr, 1000, kFloat, other, all[r], streams_[r]), 0);
      ASSERT_EQ(nccl.ncclRecv(nullptr, 1000, kFloat, other, all[r], streams_[r]), 0);
    }
    ASSERT_EQ(nccl.ncclGroupEnd(), 0);
  }
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  auto found = exchanges();
  ASSERT_EQ(found.size(), 3u);
  for (const TruthRecord& record : found) {
    EXPECT_EQ(record.end_ns, found[0].end_ns);
    EXPECT_EQ(record.kind, 0);
  }
}

TEST_F(Nccl, ASplitOrdersItsRanksByKeyAndKnowsWhereTheyComeFrom) {
  auto all = ranks(4);
  std::vector<void*> parts(4);
  ASSERT_EQ(nccl.ncclGroupStart(), 0);
  for (int r = 0; r < 4; ++r) {
    int color = r == 3 ? -1 : r % 2;  // 3: in none
    ASSERT_EQ(nccl.ncclCommSplit(all[static_cast<size_t>(r)], color, -r,
                                 &parts[static_cast<size_t>(r)], nullptr),
              0);
  }
  ASSERT_EQ(nccl.ncclGroupEnd(), 0);
  EXPECT_EQ(parts[3], nullptr);
  int count = 0, rank = -1;
  ASSERT_EQ(nccl.ncclCommCount(parts[0], &count), 0);
  ASSERT_EQ(nccl.ncclCommUserRank(parts[0], &rank), 0);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(rank, 1);
  for (size_t r : {0, 2}) ASSERT_EQ(all_reduce(parts[r], streams_[r]), 0);
  for (size_t r = 0; r < 4; ++r) ASSERT_EQ(all_reduce(all[r], streams_[r]), 0);
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  auto found = exchanges();
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(text(found[0].name), "2,0");
  EXPECT_EQ(found[0].sub, 1);
  EXPECT_EQ(found[0].parent, found[5].handle);
  EXPECT_NE(found[0].handle, found[5].handle);
  EXPECT_EQ(found[0].extra, 0);
  EXPECT_EQ(found[5].extra, 0);
}

TEST_F(Nccl, AGraphCommunicatesEachTimeThatItIsLaunched) {
  auto all = ranks(2);
  std::vector<void*> execs;
  for (size_t r : {0, 1}) {
    void *graph = nullptr, *exec = nullptr;
    ASSERT_EQ(cu.cuStreamBeginCapture_v2.legacy(streams_[r], 2), 0);
    ASSERT_EQ(launch(streams_[r], kMillisecond), 0);
    ASSERT_EQ(all_reduce(all[r], streams_[r]), 0);
    ASSERT_EQ(cu.cuStreamEndCapture.legacy(streams_[r], &graph), 0);
    ASSERT_EQ(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    execs.push_back(exec);
  }
  EXPECT_TRUE(exchanges().empty());
  for (int i = 0; i < 3; ++i) {
    for (size_t r : {0, 1}) {
      ASSERT_EQ(cu.cuGraphLaunch.legacy(execs[r], streams_[r]), 0);
    }
  }
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  std::map<int64_t, std::vector<int64_t>> ends;
  for (const TruthRecord& record : exchanges())
    ends[record.extra].push_back(record.end_ns);
  ASSERT_EQ(ends.size(), 3u);
  for (const auto& [sequence, two] : ends) EXPECT_EQ(two[0], two[1]);
}

TEST_F(Nccl, TheConfigurationSaysHowLongAKernelTakes) {
  auto all = ranks(2);
  configure("nccl_gbps", "10", "100");
  configure("nccl_latency_us", "3", "10");
  for (size_t r : {0, 1}) ASSERT_EQ(all_reduce(all[r], streams_[r], 250'000), 0);
  configure("kernel_us.AllReduce", "77", "77");
  for (size_t r : {0, 1}) ASSERT_EQ(all_reduce(all[r], streams_[r], 250'000), 0);
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  auto found = exchanges();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[1].end_ns - std::max(found[0].start_ns, found[1].start_ns),
            103 * kMicrosecond);
  EXPECT_EQ(found[3].end_ns - std::max(found[2].start_ns, found[3].start_ns),
            77 * kMicrosecond);
}

TEST_F(Nccl, NothingOfItIsLeftInTheFolderOnceAllHaveCome) {
  std::string folder = scratch_path("");
  setenv("LULL_SIM_NCCL_DIR", folder.c_str(), 1);
  UniqueId id;
  ASSERT_EQ(nccl.ncclGetUniqueId(&id), 0);
  std::string path = std::string(id.text).substr(std::string(id.text).find('/'));
  EXPECT_TRUE(path.starts_with(folder)) << path;
  std::vector<void*> all(2);
  ASSERT_EQ(nccl.ncclGroupStart(), 0);
  ASSERT_EQ(nccl.ncclCommInitRank(&all[0], 2, id, 0), 0);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  ASSERT_EQ(nccl.ncclCommInitRank(&all[1], 2, id, 1), 0);
  ASSERT_EQ(nccl.ncclGroupEnd(), 0);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  for (void* each : all) EXPECT_EQ(nccl.ncclCommDestroy(each), 0);
}

}  // namespace
}  // namespace lull::sim::nccl
