// For tests of the driver's behaviour: the functions, a context, streams, kernels
// of known length, and the ground truth of what happened.
//
// Every test sees only the records of its own calls, so tests may share a process.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/control.h"
#include "tests/sim/engine/truth_format.h"
#include "tests/sim/runtime/link.h"

namespace lull::sim {

inline constexpr int64_t kMillisecond = 1'000'000;
inline constexpr int64_t kMicrosecond = 1'000;

class DriverTest : public testing::Test {
 protected:
  DriverTest();
  ~DriverTest() override;

  void* stream(bool blocking = true);
  void* event();
  uint64_t device_memory(size_t bytes);
  void* pinned_memory(size_t bytes);

  // Launches a kernel of exactly `ns`.
  int launch(void* stream, int64_t ns);
  int launch_per_thread(void* stream, int64_t ns);

  // Device operations of this test, in the order of submission.
  std::vector<TruthRecord> ops() const;
  std::vector<TruthRecord> kernels() const;

  // What `call` was blocked for on the device, in ns.
  template <typename Call>
  int64_t blocked(Call call) {
    int64_t before = blocked_ns_();
    EXPECT_EQ(call(), 0);
    return blocked_ns_() - before;
  }

  // Sets a key of the configuration until the end of the test.
  void configure(const char* key, const char* value, const char* default_value);

  const Driver& cu;

 private:
  void* function_ = nullptr;
  uint64_t first_correlation_ = 0;
  std::vector<std::pair<std::string, std::string>> defaults_;
  void (*next_kernel_ns_)(int64_t) = nullptr;
  int (*set_)(const char*, const char*) = nullptr;
  int64_t (*blocked_ns_)() = nullptr;
};

// Everything in the log at `path`, as it is in the file now.
std::vector<TruthRecord> read_truth(const std::string& path);

// A path in a folder that goes when the process exits.
std::string scratch_path(const std::string& name);

}  // namespace lull::sim
