// How long a relay that reads nothing, or little, is waited for.
#include <gtest/gtest.h>

#include "preload/cupti/delivery.h"
#include "preload/support/clock.h"

namespace lull::cupti {
namespace {

constexpr int kPauses = 50;

// How often one may pause, at most `limit`. The ring is read before each
// `read_every`th.
int pauses(Endurance* endurance, abi::RingHeader* ring, int limit, int read_every = 0) {
  int count = 0;
  while (count < limit && endurance->pause(*ring)) {
    if (++count, read_every != 0 && count % read_every == 0) ++ring->tail;
  }
  return count;
}

TEST(Endurance, AReaderThatIsDeadIsWaitedForOnceAndNotForEachBuffer) {
  Endurance endurance;
  abi::RingHeader ring{};
  EXPECT_EQ(pauses(&endurance, &ring, 1000), kPauses);
  for (int buffer = 0; buffer < 32; ++buffer) {
    EXPECT_EQ(pauses(&endurance, &ring, 1000), 0);
  }
}

TEST(Endurance, RingsOfSeveralThreadsShareIt) {
  Endurance endurance;
  abi::RingHeader rings[2] = {};
  rings[1].tail = 7;
  int count = 0;
  while (count < 1000 && endurance.pause(rings[count % 2])) ++count;
  EXPECT_EQ(count, kPauses);
}

TEST(Endurance, AReaderThatReadsIsWaitedForFurther) {
  Endurance endurance;
  abi::RingHeader ring{};
  EXPECT_EQ(pauses(&endurance, &ring, 3 * kPauses, kPauses / 2), 3 * kPauses);
}

TEST(Endurance, AReaderThatCameBackIsWaitedForAgain) {
  Endurance endurance;
  abi::RingHeader ring{};
  EXPECT_EQ(pauses(&endurance, &ring, 1000), kPauses);
  ++ring.tail;
  EXPECT_EQ(pauses(&endurance, &ring, 1000), kPauses);
}

TEST(Endurance, TheEndOfAProgramIsNotHeldUpByASlowReaderEither) {
  Endurance endurance;
  abi::RingHeader ring{};
  EXPECT_EQ(pauses(&endurance, &ring, 1000), kPauses);
  endurance.begin_exit(monotonic_ns());
  EXPECT_EQ(pauses(&endurance, &ring, 10), 10);
  uint64_t begin = monotonic_ns();
  pauses(&endurance, &ring, 1'000'000, 1);
  EXPECT_LT(monotonic_ns() - begin, 10'000'000'000u);
}

}  // namespace
}  // namespace lull::cupti
