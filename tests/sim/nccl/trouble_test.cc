// Ranks that do not come, or do something else. None may hang for ever.
#include <unistd.h>

#include "tests/sim/nccl/ranks_fixture.h"

namespace lull::sim::nccl {
namespace {

class NcclTrouble : public RanksTest {
 protected:
  // Before the communicators are made.
  void wait_at_most(const char* seconds) { configure("nccl_timeout_s", seconds, "60"); }
  std::string last() const { return nccl.ncclGetLastError(nullptr); }
};

TEST_F(NcclTrouble, ARankThatDoesNotComeEndsTheKernelWithAnErrorOfTheCommunicator) {
  wait_at_most("0.2");
  auto all = ranks(2);
  ASSERT_EQ(all_reduce(all[0], streams_[0]), 0);
  ASSERT_EQ(launch(streams_[0], kMillisecond), 0);
  EXPECT_EQ(error(all[0]), 0);
  EXPECT_GE(blocked([&] { return cu.cuStreamSynchronize.legacy(streams_[0]); }),
            150 * kMillisecond);
  EXPECT_EQ(error(all[0]), 6);
  EXPECT_NE(
      last().find("rank 0 of 2: collective 0, AllReduce: rank 1 has not come within "
                  "0.2 s"),
      std::string::npos)
      << last();
  EXPECT_EQ(all_reduce(all[0], streams_[0]), 6);
  auto found = exchanges();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, 6);
  // Who comes later need not wait as long.
  ASSERT_EQ(all_reduce(all[1], streams_[1]), 0);
  ASSERT_EQ(all_reduce(all[1], streams_[1]), 0);
  ASSERT_EQ(cu.cuStreamSynchronize.legacy(streams_[1]), 0);
  EXPECT_EQ(error(all[1]), 6);
}

TEST_F(NcclTrouble, ARankThatHasLeftIsNotWaitedFor) {
  auto all = ranks(2);
  ASSERT_EQ(all_reduce(all[0], streams_[0]), 0);
  ASSERT_EQ(nccl.ncclCommAbort(all[1]), 0);
  ASSERT_EQ(cu.cuStreamSynchronize.legacy(streams_[0]), 0);
  EXPECT_EQ(error(all[0]), 6);
  EXPECT_NE(last().find("rank 1 has left"), std::string::npos) << last();
  EXPECT_EQ(all_reduce(all[1], streams_[1]), 4);
}

TEST_F(NcclTrouble, AnAbortedRankWaitsForNobody) {
  auto all = ranks(2);
  ASSERT_EQ(all_reduce(all[0], streams_[0]), 0);
  ASSERT_EQ(nccl.ncclCommAbort(all[0]), 0);
  EXPECT_EQ(cu.cuStreamSynchronize.legacy(streams_[0]), 0);
  EXPECT_EQ(nccl.ncclCommDestroy(all[0]), 4);
}

TEST_F(NcclTrouble, DestroyingWaitsForWhatIsUnderWay) {
  auto all = ranks(2);
  ASSERT_EQ(launch(streams_[0], 10 * kMillisecond), 0);
  for (size_t r : {0, 1}) ASSERT_EQ(all_reduce(all[r], streams_[r]), 0);
  for (size_t r : {0, 1}) ASSERT_EQ(nccl.ncclCommDestroy(all[r]), 0);
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  auto found = exchanges();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, 0);
  EXPECT_EQ(found[0].end_ns, found[1].end_ns);
}

TEST_F(NcclTrouble, RanksThatDoNotDoTheSameAreTold) {
  auto all = ranks(2);
  ASSERT_EQ(all_reduce(all[0], streams_[0], 10), 0);
  ASSERT_EQ(all_reduce(all[1], streams_[1], 20), 0);
  ASSERT_EQ(cu.cuCtxSynchronize(), 0);
  for (void* each : all) EXPECT_EQ(error(each), 5);
}

TEST_F(NcclTrouble, ACommunicatorThatIsNeverCompleteIsNone) {
  wait_at_most("0.1");
  UniqueId id;
  ASSERT_EQ(nccl.ncclGetUniqueId(&id), 0);
  void* alone = nullptr;
  EXPECT_EQ(nccl.ncclCommInitRank(&alone, 2, id, 0), 2);
  EXPECT_EQ(alone, nullptr);
  std::string path = std::string(id.text).substr(std::string(id.text).find('/'));
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_EQ(nccl.ncclCommInitRank(&alone, 2, id, 2), 4);
}

}  // namespace
}  // namespace lull::sim::nccl
