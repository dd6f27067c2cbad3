// The stacks of one process's samples. Each is defined once, and is an integer from
// then on. Frames with equal names and lines are equal, also if their code objects
// differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/relay/samples/codes.h"
#include "daemon/relay/samples/reader.h"
#include "events.pb.h"

namespace lull::relay {

class StackTable {
 public:
  // From 1 on, in the order in which they came; 0: there are no frames, or no room for
  // another stack.
  uint32_t Number(const Look& look, CodeBook* codes);
  // Definitions of the numbers that came since the last call, their `ref` being the
  // number.
  std::vector<lull::v1::StackDef> TakeNew() { return std::move(fresh_); }

 private:
  absl::flat_hash_map<std::string, uint32_t> numbers_;  // by frames, as bytes
  std::vector<lull::v1::StackDef> fresh_;
  std::string key_;
  size_t bytes_ = 0;  // of all definitions
};

}  // namespace lull::relay
