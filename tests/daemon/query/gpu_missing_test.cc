// Why a report has no GPU truth, in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/query/gpu.h"
#include "daemon/storage/rows.h"

namespace lull::query {
namespace {

using ::testing::HasSubstr;

constexpr auto kHost = lull::v1::GPU_MODE_HOST, kWindow = lull::v1::GPU_MODE_WINDOW,
               kContinuous = lull::v1::GPU_MODE_CONTINUOUS;
constexpr auto kUnused = lull::v1::CUPTI_STATE_UNUSED,
               kNoLibrary = lull::v1::CUPTI_STATE_NO_LIBRARY,
               kReady = lull::v1::CUPTI_STATE_READY;

std::string Why(lull::v1::GpuMode mode, lull::v1::CuptiState cupti_state, bool ended,
                const std::vector<lull::v1::TracingState>& spans = {}) {
  storage::JobRow job;
  job.info.set_gpu_mode(mode);
  job.info.set_gpu_schedule("wait=20,active=5");
  job.ended = ended;
  std::vector<ProcessSums> processes(1);
  processes[0].process.counters.set_gpu_calls(7);
  processes[0].process.counters.set_cupti_state(cupti_state);
  for (lull::v1::TracingState state : spans) {
    storage::TracingRow row;
    row.state = state;
    processes[0].tracing.push_back(row);
  }
  return WhyNoGpuTruth(job, processes);
}

TEST(GpuMissing, SaysThatNoWindowCameToAProgramThatWasTooShort) {
  for (lull::v1::CuptiState state : {kUnused, kReady}) {
    EXPECT_EQ(Why(kWindow, state, true),
              "no window of tracing came (schedule wait=20,active=5)");
    EXPECT_EQ(Why(kWindow, state, false),
              "no window of tracing has come yet (schedule wait=20,active=5)");
  }
}

TEST(GpuMissing, SaysWhatKeptTheWholeProgramFromBeingTraced) {
  EXPECT_THAT(Why(kHost, kUnused, true), HasSubstr("--gpu host"));
  EXPECT_THAT(Why(kContinuous, kUnused, true), HasSubstr("had not begun"));
  EXPECT_THAT(Why(kContinuous, kNoLibrary, true), HasSubstr("no CUPTI library"));
  EXPECT_THAT(Why(kContinuous, kReady, true, {lull::v1::TRACING_STATE_YIELDED}),
              HasSubstr("another user of CUPTI"));
  EXPECT_THAT(Why(kWindow, kReady, true,
                  {lull::v1::TRACING_STATE_WARM_UP, lull::v1::TRACING_STATE_OFF}),
              HasSubstr("warmed up and did not count"));
}

}  // namespace
}  // namespace lull::query
