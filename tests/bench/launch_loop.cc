// The cost of the launch hook to a whole loop, as a ratio within one process.
//
//   launch_loop ROUNDS WORK_US
//
// A round is 200 iterations of WORK_US of arithmetic and one kernel launch
// through the hooked symbol, then the same through the runtime's own address.
// The two halves of a round lie milliseconds apart, so that the drift of a shared
// machine cancels. Prints one line: launches per second, the median ratio of
// hooked to direct, and the middle half of the ratios (quartiles).
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

struct Dim3 {
  unsigned x, y, z;
};
using LaunchKernel = int (*)(const void*, Dim3, Dim3, void**, size_t, void*);
extern "C" int cudaLaunchKernel(const void*, Dim3, Dim3, void**, size_t, void*);

namespace {

constexpr int kLaunchesPerHalf = 200;
volatile uint64_t g_sink;

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + t.tv_nsec;
}

// A fixed number of instructions, calibrated once: the same work in both halves.
void work(uint64_t iterations) {
  uint64_t x = 1;
  for (uint64_t i = 0; i < iterations; ++i)
    x = x * 6364136223846793005u + 1442695040888963407u;
  g_sink = x;
}

uint64_t calibrate(double microseconds) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 20; ++i) {
    uint64_t start = now_ns();
    work(1'000'000);
    best = std::min(best, now_ns() - start);
  }
  return static_cast<uint64_t>(microseconds * 1000.0 * 1'000'000 / best);
}

uint64_t half(LaunchKernel launch, uint64_t iterations) {
  uint64_t start = now_ns();
  for (int i = 0; i < kLaunchesPerHalf; ++i) {
    work(iterations);
    launch(nullptr, Dim3{1, 1, 1}, Dim3{1, 1, 1}, nullptr, 0, nullptr);
  }
  return now_ns() - start;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: launch_loop ROUNDS WORK_US\n");
    return 2;
  }
  int rounds = std::atoi(argv[1]);
  uint64_t iterations = calibrate(std::atof(argv[2]));
  void* runtime = dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD);
  auto direct = runtime == nullptr
                    ? nullptr
                    : reinterpret_cast<LaunchKernel>(
                          dlvsym(runtime, "cudaLaunchKernel", "libcudart.so.12"));
  if (direct == nullptr) {
    std::fprintf(stderr,
                 "launch_loop: the runtime's own cudaLaunchKernel was not found\n");
    return 1;
  }
  half(cudaLaunchKernel, iterations);  // starts the recording
  half(direct, iterations);

  std::vector<double> ratios;
  uint64_t hooked_ns = 0;
  for (int round = 0; round < rounds; ++round) {
    bool hooked_first = round % 2 == 0;
    uint64_t first = half(hooked_first ? cudaLaunchKernel : direct, iterations);
    uint64_t second = half(hooked_first ? direct : cudaLaunchKernel, iterations);
    uint64_t hooked = hooked_first ? first : second;
    hooked_ns += hooked;
    ratios.push_back(static_cast<double>(hooked) / (first + second - hooked));
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf(
      "{\"launches_per_second\": %.0f, \"ratio_median\": %.5f, \"ratio_q1\": %.5f, "
      "\"ratio_q3\": %.5f, \"same_symbol\": %s}\n",
      1e9 * rounds * kLaunchesPerHalf / hooked_ns, ratios[ratios.size() / 2],
      ratios[ratios.size() / 4], ratios[ratios.size() * 3 / 4],
      direct == cudaLaunchKernel ? "true" : "false");
}
