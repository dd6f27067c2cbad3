// The fuzz target of the import without a fuzzer: the same seeds, mutated the same way,
// each time.
#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>

#include "tests/fuzz/import_inputs.h"
#include "tests/trials.h"

namespace lull::imports {
namespace {

constexpr int kReplays = Trials(5'000, 2'500);  // of each seed

// What stands between tokens, and numbers that are none or at an end of their range.
constexpr const char* kPieces[] = {"",
                                   "-",
                                   "9223372036854775807",
                                   "18446744073709551616",
                                   "1e308",
                                   "0.0000001",
                                   "null",
                                   "[[[[",
                                   "{\"a\":",
                                   "\\u0000",
                                   "\\ud800",
                                   "\xff\xfe",
                                   "]",
                                   "}",
                                   ",",
                                   "\"",
                                   ":",
                                   "NaN"};

std::string Mutate(std::string input, std::mt19937_64* random) {
  auto pick = [&](size_t below) {
    return below == 0 ? 0 : static_cast<size_t>((*random)() % below);
  };
  for (size_t changes = 1 + pick(4); changes > 0 && !input.empty(); --changes) {
    const size_t at = pick(input.size());
    switch (pick(6)) {
      case 0:
        input[at] = static_cast<char>((*random)());
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ (1 << pick(8)));
        break;
      case 2: {  // a number, or a word
        size_t end = at;
        while (end < input.size() && isalnum(static_cast<unsigned char>(input[end]))) {
          ++end;
        }
        input.replace(at, end - at, kPieces[pick(std::size(kPieces))]);
        break;
      }
      case 3:
        input.insert(at, kPieces[pick(std::size(kPieces))]);
        break;
      case 4:
        input.insert(at, input.substr(pick(input.size()), pick(400)));
        break;
      default:
        input.erase(at, pick(40));
    }
  }
  return input;
}

TEST(ImportReplay, TakesTheSeeds) {
  for (const std::string& seed : ImportSeeds()) FuzzImport(seed);
}

TEST(ImportReplay, SurvivesWhatIsMadeOfThem) {
  std::mt19937_64 random(17);
  for (const std::string& seed : ImportSeeds()) {
    for (int i = 0; i < kReplays; ++i) FuzzImport(Mutate(seed, &random));
  }
}

}  // namespace
}  // namespace lull::imports
