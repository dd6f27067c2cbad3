// What the fuzz targets of the relay run on: one function per parser, each given
// arbitrary bytes. libFuzzer calls them with what it invents (LULL_BUILD_FUZZERS);
// fuzz_replay_test calls them with a fixed number of mutated seeds, so that the
// default tests cover them too.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lull::relay {

struct FuzzTarget {
  const char* name;
  void (*run)(std::string_view input);
  std::vector<std::string> (*seeds)();  // well-formed inputs to start from
  int replays;  // mutations of each seed in fuzz_replay_test: a second or less
};

// For GoogleTest: the name, not the bytes of the function pointers.
inline void PrintTo(const FuzzTarget& target, std::ostream* out) {
  *out << target.name;
}

// A segment's headers, slots and arena; input: see FillSegment().
void FuzzSegment(std::string_view input);
// Python minor, first line, instruction, then the table.
void FuzzLineTable(std::string_view input);
// A spool file, as it might lie on disk.
void FuzzSpoolFile(std::string_view input);
// /proc/PID/maps.
void FuzzMaps(std::string_view input);

// An answer of a symbol reader, which a hostile file may have taken over.
void FuzzSymbolAnswer(std::string_view input);

const std::vector<FuzzTarget>& FuzzTargets();

}  // namespace lull::relay
