// The fuzz target of memory snapshots without a fuzzer: the same seeds, mutated the
// same way, each time.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "daemon/import/snapshot_reader.h"
#include "tests/fuzz/snapshot_inputs.h"
#include "tests/trials.h"

namespace lull::imports {
namespace {

constexpr int kReplays = Trials(4'000, 2'000);  // of each seed

// Opcodes, so that programs stay such, and other bytes.
std::string Mutate(std::string input, std::mt19937_64* random) {
  static constexpr char kOpcodes[] =
      "(.N]})aesuthjqrKMJXGcRbio0\x8c\x8a\x94\x85\x86\x87";
  auto pick = [&](size_t below) { return static_cast<size_t>((*random)() % below); };
  for (size_t changes = 1 + pick(5); changes > 0; --changes) {
    const size_t at = pick(input.size());
    switch (pick(6)) {
      case 0:
        input[at] = static_cast<char>((*random)());
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ (1 << pick(8)));
        break;
      case 2:
        input[at] = kOpcodes[pick(sizeof(kOpcodes) - 1)];
        break;
      case 3:
        input.insert(at, 1, kOpcodes[pick(sizeof(kOpcodes) - 1)]);
        break;
      case 4: {  // a part of it once more
        const std::string part = input.substr(pick(input.size()), 1 + pick(40));
        input.insert(at, part);
        break;
      }
      default:
        if (pick(4) == 0) {
          input.resize(at + 1);
        } else {
          input.erase(at, 1 + pick(8));
          if (input.empty()) input = "\x80";
        }
    }
  }
  return input;
}

TEST(SnapshotReplay, TakesTheSeeds) {
  for (const std::string& seed : SnapshotSeeds()) FuzzSnapshot(seed);
  for (size_t i = 0; i < 3; ++i) {
    auto read = ReadSnapshot(*Input::OfBytes(SnapshotSeeds()[i]));
    EXPECT_TRUE(read.ok()) << i << " " << read.status();
  }
}

TEST(SnapshotReplay, SurvivesWhatIsMadeOfThem) {
  std::mt19937_64 random(17);
  size_t whole = 0;
  for (const std::string& seed : SnapshotSeeds()) {
    for (int i = 0; i < kReplays; ++i) {
      const std::string mutant = Mutate(seed, &random);
      FuzzSnapshot(mutant);
      whole += ReadSnapshot(*Input::OfBytes(mutant)).ok();
    }
  }
  EXPECT_GT(whole, 200u);  // else it tries the first bytes alone
}

}  // namespace
}  // namespace lull::imports
