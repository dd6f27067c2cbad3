// What a simulated machine is like: counts, costs, bandwidths.
//
// Read once from LULL_SIM_CONFIG, which holds either the path of a file or the
// text itself: `key=value` pairs separated by newlines or semicolons, '#' starts
// a comment. docs/simulated_device.md lists the keys. The control API sets the
// same keys at run time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lull::sim {

struct Config {
  int64_t devices = 1;
  int64_t memory_bytes = int64_t{80} << 30;  // of each device

  int64_t kernel_ns = 10'000;  // a kernel without an entry of its own
  int64_t launch_ns = 3'000;   // host time of a launch call
  int64_t graph_launch_ns = 6'000;
  int64_t latency_ns = 2'000;  // from the end of the call to the earliest start
  int64_t concurrent_kernels = 128;
  int64_t queue_depth = 1024;  // pending operations of a stream; then launches block

  double tflops = 50;          // matrix products and convolutions
  double tensor_tflops = 400;  // the same on tensor cores

  double h2d_gbps = 25;
  double d2h_gbps = 25;
  double d2d_gbps = 1500;
  double host_gbps = 10;
  int64_t copy_latency_ns = 1'500;  // fixed part of every copy and memset
  int64_t stage_bytes = 64 << 10;   // pageable async H2D up to here does not block

  int64_t malloc_ns = 50'000;
  int64_t free_ns = 20'000;
  int64_t host_alloc_ns = 100'000;  // pinning; also cudaFreeHost and (un)register
  bool data = true;                 // copies and memsets move bytes
  int64_t zero_read_bytes = 0;      // copies to the host up to here deliver zeros

  int64_t cupti_launch_ns = 300;    // host time that tracing adds to a traced call
  int64_t cupti_stays_ns = 0;       // ... and to a launch once it is off again
  int64_t cupti_clock_step_ns = 0;  // how far the wall clock was set, as CUPTI sees it

  double nccl_gbps = 100;                    // what a rank moves over its links
  int64_t nccl_latency_ns = 10'000;          // fixed part of every exchange
  int64_t nccl_timeout_ns = 60'000'000'000;  // so long one waits for a rank

  // Kernels whose (mangled) name contains `first` take `second` ns. The entry
  // that was set last wins.
  std::vector<std::pair<std::string, int64_t>> kernels;

  // Of the kernel `name`; `otherwise` when there is no entry for it.
  int64_t kernel_duration(std::string_view name, int64_t otherwise) const;
  int64_t kernel_duration(std::string_view name) const {
    return kernel_duration(name, kernel_ns);
  }
  // Of a kernel that does so many operations on so many bytes.
  int64_t work_duration(double flops, double bytes, bool tensor) const;

  // Of an exchange in which a rank moves so many bytes.
  int64_t exchange_duration(double bytes) const;

  // False, and nothing changed, when the key or the value is not understood.
  bool set(std::string_view key, std::string_view value);

  // Applies every pair of `text`; the first one that is wrong goes to `error`.
  bool parse(std::string_view text, std::string* error);
};

// From the environment. A configuration that cannot be read ends the process
// with a message: a test on the wrong machine proves nothing.
Config config_from_environment();

}  // namespace lull::sim
