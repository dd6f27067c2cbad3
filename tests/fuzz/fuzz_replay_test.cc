// The fuzz targets without a fuzzer: the same seeds, mutated the same way, each time.
// A finding ends the program; under sanitizers also what would go unnoticed here.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/fuzz/relay_inputs.h"
#include "tests/trials.h"

namespace lull::relay {
namespace {

// One to eight changes of the kinds that find the most: a byte, an interesting
// number in place of a word, a piece taken out, repeated, or the end cut off.
std::string Mutate(std::string input, std::mt19937_64* random) {
  auto pick = [&](size_t below) {
    return below == 0 ? 0 : static_cast<size_t>((*random)() % below);
  };
  constexpr uint64_t kInteresting[] = {0,    1,          0x7f,         0x80,
                                       0xff, 0x7fffffff, 0xffffffff,   8191,
                                       8192, 8193,       ~uint64_t{0}, 1ull << 63};
  for (size_t changes = 1 + pick(8); changes > 0 && !input.empty(); --changes) {
    size_t at = pick(input.size());
    switch (pick(6)) {
      case 0:
        input[at] = static_cast<char>((*random)());
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ (1 << pick(8)));
        break;
      case 2:
      case 3: {
        uint64_t value = kInteresting[pick(std::size(kInteresting))];
        size_t aligned = at / 4 * 4;
        size_t width = pick(2) != 0 ? 8 : 4;
        for (size_t i = 0; i < width; ++i) {
          if (aligned + i < input.size()) {
            input[aligned + i] = static_cast<char>(value >> (8 * i));
          }
        }
        break;
      }
      case 4:
        input.insert(at, input.substr(pick(input.size()), pick(16)));
        break;
      default:
        input.resize(pick(2) != 0 ? at : input.size() - 1);
    }
  }
  return input;
}

class FuzzReplay : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzReplay, SurvivesThousandsOfMutatedInputs) {
  std::mt19937_64 random(4711);
  for (const std::string& seed : GetParam().seeds()) {
    GetParam().run(seed);
    for (int i = 0; i < GetParam().replays / Trials(1, 2); ++i)
      GetParam().run(Mutate(seed, &random));
  }
}

INSTANTIATE_TEST_SUITE_P(Relay, FuzzReplay, ::testing::ValuesIn(FuzzTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lull::relay
