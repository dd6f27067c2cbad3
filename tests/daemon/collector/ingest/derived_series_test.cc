#include "daemon/collector/ingest/derived_series.h"

#include <gtest/gtest.h>

#include "daemon/collector/ingest/job_tables.h"

namespace lull::collector {
namespace {

using aggregate::EventType;
using aggregate::Series;

class DerivedSeriesTest : public ::testing::Test {
 protected:
  uint32_t Wait(uint32_t python_stack, uint32_t line) {
    Series series;
    series.type = EventType::kHostWait;
    series.python_stack = python_stack;
    series.line_site = line;
    return series_.Intern(series);
  }
  const Series& IdleOf(uint32_t culprit, uint32_t other_wait) {
    blame::Idle idle;
    idle.end_ns = 100;
    idle.cause = blame::Cause::kHostWait;
    idle.culprit = culprit;
    idle.other_wait = other_wait;
    return series_[derived_.OfIdle(idle)];
  }

  JobTables tables_;
  SeriesTable series_{tables_};
  GpuTables gpu_;
  DerivedSeries derived_{series_, gpu_};
};

TEST_F(DerivedSeriesTest, OfTwoThatWaitForEachOtherTheOneWithALineIsTold) {
  const uint32_t engine = Wait(0, 0);
  const uint32_t program = Wait(5, 70);
  EXPECT_EQ(IdleOf(engine, program).line_site, 70u);
  EXPECT_EQ(IdleOf(engine, program).python_stack, 5u);
  EXPECT_EQ(IdleOf(engine, 0).line_site, 0u) << "one that waits alone";
}

TEST_F(DerivedSeriesTest, WhoeverHasALineOfItsOwnIsToldWithIt) {
  const uint32_t here = Wait(4, 60);
  const uint32_t there = Wait(5, 70);
  EXPECT_EQ(IdleOf(here, there).line_site, 60u);
  EXPECT_EQ(IdleOf(here, Wait(0, 0)).line_site, 60u);
}

}  // namespace
}  // namespace lull::collector
