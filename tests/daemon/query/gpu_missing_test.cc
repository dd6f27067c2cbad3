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

constexpr uint32_t kHost = 0, kWindow = 1, kContinuous = 2;  // lull::abi::GpuMode
constexpr uint32_t kUnused = 0, kNoLibrary = 1, kReady = 4;  // lull::abi::CuptiState
constexpr uint32_t kYieldedSpan = 3;                         // lull::abi::TracingState

std::string Why(uint32_t mode, uint32_t cupti_state, bool ended,
                const std::vector<uint32_t>& spans = {}) {
  storage::JobRow job;
  job.gpu_mode = mode;
  job.gpu_schedule = "wait=20,active=5";
  job.ended = ended;
  std::vector<ProcessSums> processes(1);
  processes[0].process.counters.set_gpu_calls(7);
  processes[0].process.counters.set_cupti_state(cupti_state);
  for (uint32_t state : spans) {
    storage::TracingRow row;
    row.state = state;
    processes[0].tracing.push_back(row);
  }
  return WhyNoGpuTruth(job, processes);
}

TEST(GpuMissing, SaysThatNoWindowCameToAProgramThatWasTooShort) {
  for (uint32_t state : {kUnused, kReady}) {
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
  EXPECT_THAT(Why(kContinuous, kReady, true, {kYieldedSpan}),
              HasSubstr("another user of CUPTI"));
}

}  // namespace
}  // namespace lull::query
