// What a hooked launch costs beyond the two clock reads that it is there for.
// The original is a fake that returns at once; the reader of the ring always
// keeps up. All parts are measured in turns within one run, and each number is
// the fastest of many batches: the rest is other people's noise.
#include <stdio.h>

#include <algorithm>

#include "preload/support/clock.h"
#include "tests/preload/cuda_fake.h"
#include "tests/preload/cuda_shim_double.h"

namespace {

constexpr int kBatches = 400;
constexpr int kCalls = 5000;
constexpr double kBudgetNs = 25;

template <typename Body>
double batch_ns(Body body) {
  uint64_t start = lull::monotonic_ns();
  for (int i = 0; i < kCalls; ++i) body();
  return static_cast<double>(lull::monotonic_ns() - start) / kCalls;
}

int launch(const Cudart& cuda) {
  return cuda.launch(&cuda, {1, 1, 1}, {1, 1, 1}, nullptr, 0, kStream);
}

int launch_unhooked() {
  return fake_launch_13(&kStream, {1, 1, 1}, {1, 1, 1}, nullptr, 0, kStream);
}

}  // namespace

int main() {
  const Cudart& cuda = *caller_13();
  launch(cuda);  // resolves the original
  double clocks = 1e9, plain = 1e9, inert = 1e9, asleep = 1e9, recording = 1e9;
  double_start_recording();
  for (int i = 0; i < kBatches; ++i) {
    clocks = std::min(clocks, batch_ns([] {
                        asm volatile("" ::"r"(lull::monotonic_ns()));
                        asm volatile("" ::"r"(lull::monotonic_ns()));
                      }));
    plain = std::min(plain, batch_ns(launch_unhooked));
    double_set_mode(lull::Mode::kInert);
    inert = std::min(inert, batch_ns([&] { launch(cuda); }));
    double_set_mode(lull::Mode::kRecording);
    std::atomic<uint32_t>& armed =
        lull::abi::SegmentView(double_segment()).control().armed;
    armed = 0;
    asleep = std::min(asleep, batch_ns([&] { launch(cuda); }));
    armed = 1;
    recording = std::min(recording, batch_ns([&] { launch(cuda); }));
  }
  double beyond = recording - plain - clocks;
  printf("two clock reads        %6.1f ns\n", clocks);
  printf("launch, no hook        %6.1f ns\n", plain);
  printf("launch, inert hook     %6.1f ns  (+%.1f)\n", inert, inert - plain);
  printf("launch, sleeping hook  %6.1f ns  (+%.1f)\n", asleep, asleep - plain);
  printf("launch, recording hook %6.1f ns  (+%.1f)\n", recording, recording - plain);
  printf("beyond the clock reads %6.1f ns  (%.2f of them; budget %.0f ns)\n", beyond,
         beyond / clocks, kBudgetNs);
  return beyond <= kBudgetNs ? 0 : 1;
}
