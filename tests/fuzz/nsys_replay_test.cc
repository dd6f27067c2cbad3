// The fuzz target of exports of Nsight Systems without a fuzzer: the same seeds,
// mutated the same way, each time.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/fuzz/nsys_inputs.h"

namespace lull::imports {
namespace {

constexpr int kReplays = 1'500;  // of each seed

std::string Mutate(std::string input, std::mt19937_64* random) {
  auto pick = [&](size_t below) { return static_cast<size_t>((*random)() % below); };
  for (size_t changes = 1 + pick(6); changes > 0; --changes) {
    const size_t at = pick(input.size());
    switch (pick(5)) {
      case 0:
        input[at] = static_cast<char>((*random)());
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ (1 << pick(8)));
        break;
      case 2:  // a number, or a page's pointer
        for (size_t i = at; i < input.size() && i < at + 4; ++i) {
          input[i] = static_cast<char>(pick(2) == 0 ? 0xff : 0x00);
        }
        break;
      case 3: {  // a part of another page
        const size_t from = pick(input.size());
        input.replace(at, 64, input.substr(from, 64));
        break;
      }
      default:
        if (pick(10) == 0) input.resize(at + 1);
    }
  }
  return input;
}

TEST(NsysReplay, TakesTheSeeds) {
  for (const std::string& seed : NsysSeeds()) FuzzNsys(seed);
}

TEST(NsysReplay, SurvivesWhatIsMadeOfThem) {
  std::mt19937_64 random(17);
  for (const std::string& seed : NsysSeeds()) {
    for (int i = 0; i < kReplays; ++i) FuzzNsys(Mutate(seed, &random));
  }
}

}  // namespace
}  // namespace lull::imports
