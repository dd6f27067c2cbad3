// Which operation waits for which: stream order, events, and the implicit order of
// the NULL stream.
#include <atomic>
#include <cstring>

#include "tests/sim/driver_fixture.h"

namespace lull::sim {
namespace {

using StreamOrder = DriverTest;

TEST_F(StreamOrder, KernelsOfOneStreamFollowEachOtherWithoutAGap) {
  void* s = stream();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(launch(s, kMillisecond), 0);
  auto all = kernels();
  ASSERT_EQ(all.size(), 4u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].end_ns - all[i].start_ns, kMillisecond);
  }
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i].start_ns, all[i - 1].end_ns);
  EXPECT_EQ(all[0].start_ns, all[0].extra + 2'000) << "submission and latency";
}

TEST_F(StreamOrder, KernelsOfTwoStreamsOverlap) {
  ASSERT_EQ(launch(stream(), 5 * kMillisecond), 0);
  ASSERT_EQ(launch(stream(), 5 * kMillisecond), 0);
  auto all = kernels();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_LT(all[1].start_ns, all[0].end_ns);
  EXPECT_NE(all[0].stream, all[1].stream);
}

TEST_F(StreamOrder, TheNullStreamWaitsForBlockingStreams) {
  ASSERT_EQ(launch(stream(), 5 * kMillisecond), 0);
  ASSERT_EQ(launch(nullptr, kMillisecond), 0);
  auto all = kernels();
  EXPECT_EQ(all[1].start_ns, all[0].end_ns);
  EXPECT_EQ(all[1].stream, 0u);
}

TEST_F(StreamOrder, BlockingStreamsWaitForTheNullStream) {
  void* s = stream();
  ASSERT_EQ(launch(nullptr, 5 * kMillisecond), 0);
  ASSERT_EQ(launch(s, kMillisecond), 0);
  auto all = kernels();
  EXPECT_EQ(all[1].start_ns, all[0].end_ns);
}

TEST_F(StreamOrder, NonBlockingStreamsAndTheNullStreamDoNotCare) {
  void* s = stream(false);
  ASSERT_EQ(launch(nullptr, 5 * kMillisecond), 0);
  ASSERT_EQ(launch(s, 5 * kMillisecond), 0);
  ASSERT_EQ(launch(nullptr, kMillisecond), 0);
  auto all = kernels();
  EXPECT_LT(all[1].start_ns, all[0].end_ns);
  EXPECT_EQ(all[2].start_ns, all[0].end_ns);
}

TEST_F(StreamOrder, APerThreadDefaultStreamIsABlockingStream) {
  ASSERT_EQ(launch(nullptr, 5 * kMillisecond), 0);
  ASSERT_EQ(launch_per_thread(nullptr, kMillisecond), 0);
  auto all = kernels();
  EXPECT_NE(all[1].stream, all[0].stream);
  EXPECT_EQ(all[1].start_ns, all[0].end_ns);
}

TEST_F(StreamOrder, AnEventHoldsAnotherStreamBack) {
  void *a = stream(), *b = stream(), *e = event();
  ASSERT_EQ(launch(a, 5 * kMillisecond), 0);
  ASSERT_EQ(cu.cuEventRecordWithFlags.legacy(e, a, 0), 0);
  ASSERT_EQ(launch(a, 5 * kMillisecond), 0);
  ASSERT_EQ(cu.cuStreamWaitEvent.legacy(b, e, 0), 0);
  ASSERT_EQ(launch(b, kMillisecond), 0);
  auto all = kernels();
  EXPECT_EQ(all[2].start_ns, all[0].end_ns) << "after the first kernel, not the second";
}

TEST_F(StreamOrder, WaitingForAnEventNeverRecordedIsNoWait) {
  void* s = stream();
  ASSERT_EQ(cu.cuStreamWaitEvent.legacy(s, event(), 0), 0);
  ASSERT_EQ(launch(s, kMillisecond), 0);
  EXPECT_EQ(kernels().at(0).start_ns, kernels().at(0).extra + 2'000);
}

TEST_F(StreamOrder, ElapsedTimeIsThatOfTheTimeline) {
  void *s = stream(), *begin = event(), *end = event();
  float milliseconds = 0;
  EXPECT_EQ(cu.cuEventElapsedTime_v2(&milliseconds, begin, end), 400)
      << "never recorded";
  ASSERT_EQ(launch(s, kMillisecond), 0);
  ASSERT_EQ(cu.cuEventRecordWithFlags.legacy(begin, s, 0), 0);
  ASSERT_EQ(launch(s, 12'345'678), 0);
  ASSERT_EQ(cu.cuEventRecordWithFlags.legacy(end, s, 0), 0);
  EXPECT_EQ(cu.cuEventQuery(end), 600);
  EXPECT_EQ(cu.cuEventElapsedTime_v2(&milliseconds, begin, end), 600);
  ASSERT_EQ(cu.cuEventSynchronize(end), 0);
  EXPECT_EQ(cu.cuEventQuery(end), 0);
  ASSERT_EQ(cu.cuEventElapsedTime_v2(&milliseconds, begin, end), 0);
  EXPECT_FLOAT_EQ(milliseconds, 12.345678f);
}

// Atomic for TSan alone, which does not see how the simulated device orders threads.
struct Seen {
  const char* buffer;
  std::atomic<char> value;
};
void look(void* data) {
  auto* seen = static_cast<Seen*>(data);
  seen->value = seen->buffer[0];
}

TEST_F(StreamOrder, AHostFunctionSeesWhatCameBeforeAndHoldsUpWhatComesAfter) {
  void* s = stream();
  auto* buffer = static_cast<char*>(pinned_memory(4096));
  uint64_t device = device_memory(4096);
  Seen seen{buffer, 0};
  ASSERT_EQ(cu.cuMemsetD8Async.legacy(device, 42, 4096, s), 0);
  ASSERT_EQ(launch(s, 2 * kMillisecond), 0);
  ASSERT_EQ(cu.cuMemcpyDtoHAsync_v2.legacy(buffer, device, 4096, s), 0);
  ASSERT_EQ(cu.cuLaunchHostFunc.legacy(s, look, &seen), 0);
  ASSERT_EQ(launch(s, kMillisecond), 0);
  ASSERT_EQ(cu.cuStreamSynchronize.legacy(s), 0);
  EXPECT_EQ(seen.value, 42);
  const TruthRecord *host = nullptr, *before = nullptr, *after = nullptr;
  auto all = ops();
  for (const TruthRecord& op : all) {
    if (op.kind == 2) before = &op;
    if (op.kind == 6) host = &op;
    if (op.kind == 1) after = &op;
  }
  ASSERT_TRUE(host && before && after);
  EXPECT_GE(host->start_ns, before->end_ns);
  EXPECT_GE(after->start_ns, host->end_ns);
}

TEST_F(StreamOrder, ADestroyedStreamStillHoldsUpTheDevice) {
  void* s = stream();
  ASSERT_EQ(launch(s, 5 * kMillisecond), 0);
  ASSERT_EQ(cu.cuStreamDestroy_v2(s), 0);
  EXPECT_GT(blocked([&] { return cu.cuCtxSynchronize(); }), kMillisecond);
  EXPECT_EQ(cu.cuStreamSynchronize.legacy(s), 400);
}

}  // namespace
}  // namespace lull::sim
