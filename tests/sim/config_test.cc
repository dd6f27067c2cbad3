#include "tests/sim/engine/config.h"

#include <gtest/gtest.h>

namespace lull::sim {
namespace {

TEST(SimConfig, ReadsPairsBetweenNewlinesSemicolonsAndComments) {
  Config config;
  std::string error;
  ASSERT_TRUE(config.parse(
      "devices = 2; kernel_us=12.5\n# nothing\nh2d_gbps=8 # slow\n", &error))
      << error;
  EXPECT_EQ(config.devices, 2);
  EXPECT_EQ(config.kernel_ns, 12'500);
  EXPECT_EQ(config.h2d_gbps, 8);
}

TEST(SimConfig, NamesTheFirstPairThatItDoesNotUnderstand) {
  Config config;
  std::string error;
  EXPECT_FALSE(config.parse("devices=2;colour=7", &error));
  EXPECT_EQ(error, "colour=7");
  EXPECT_FALSE(config.parse("kernel_us=fast", &error));
  EXPECT_EQ(error, "kernel_us=fast");
  EXPECT_FALSE(config.parse("h2d_gbps=0", &error));
  EXPECT_FALSE(config.parse("launch_us=-1", &error));
}

TEST(SimConfig, GivesAKernelTheLastDurationThatItsNameContains) {
  Config config;
  ASSERT_TRUE(config.set("kernel_us", "10"));
  ASSERT_TRUE(config.set("kernel_us.gemm", "100"));
  ASSERT_TRUE(config.set("kernel_us.gemm_small", "20"));
  EXPECT_EQ(config.kernel_duration("_Z4gemmPf"), 100'000);
  EXPECT_EQ(config.kernel_duration("_Z10gemm_smallPf"), 20'000);
  EXPECT_EQ(config.kernel_duration("relu"), 10'000);
}

TEST(SimConfig, GivesWorkTheTimeOfTheSlowerOfComputingAndMovingBytes) {
  Config config;
  std::string error;
  ASSERT_TRUE(config.parse("tflops=10;tensor_tflops=100;d2d_gbps=1000", &error));
  constexpr int64_t kStart = 2'000;
  EXPECT_EQ(config.work_duration(1e9, 1e6, false), kStart + 100'000);
  EXPECT_EQ(config.work_duration(1e9, 1e6, true), kStart + 10'000);
  EXPECT_EQ(config.work_duration(1e9, 1e9, true), kStart + 1'000'000);
  ASSERT_TRUE(config.set("kernel_us.gemm", "7"));
  EXPECT_EQ(config.kernel_duration("sgemm", 5), 7'000);
  EXPECT_EQ(config.kernel_duration("relu", 5), 5);
}

TEST(SimConfig, GivesAnExchangeALatencyAndABandwidth) {
  Config config;
  std::string error;
  ASSERT_TRUE(
      config.parse("nccl_gbps=10;nccl_latency_us=4;nccl_timeout_s=0.5", &error));
  EXPECT_EQ(config.exchange_duration(1e6), 104'000);
  EXPECT_EQ(config.nccl_timeout_ns, 500'000'000);
}

TEST(SimConfig, LetsTheWallClockAloneGoBackwards) {
  Config config;
  ASSERT_TRUE(config.set("cupti_clock_step_ns", "-2000000000"));
  EXPECT_EQ(config.cupti_clock_step_ns, -2'000'000'000);
  EXPECT_FALSE(config.set("cupti_clock_step_ns", "--1"));
  EXPECT_FALSE(config.set("cupti_launch_ns", "-1"));
}

}  // namespace
}  // namespace lull::sim
