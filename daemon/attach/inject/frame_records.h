// Which return addresses on a stack are of functions that have not returned.
//
// A word alone does not tell: functions leave theirs behind, and frames that come later
// cover them without writing to all of their room. What the loader leaves behind when
// it binds a function at its first call may lie in the frame of an interpreter's main
// loop for hours.
//
// On aarch64 functions chain their frames: each that calls others pushes a record, its
// caller's record and the return address, and points x29 at it (AAPCS64, 6.4.6; GCC and
// Clang do so unless they are told not to). So the return address of a function that
// begins with pushing a record is in the chain until that function has returned. Code
// that uses x29 for something else breaks the chain, which then says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/attach/inject/landscape.h"

namespace lull::inject {

// The words of a stack from the stack pointer on. `newest_record`: where the chain
// begins; 0 where that is not known, or functions keep none (x86-64); kToBeSeen: once
// the thread is stopped it will be known.
struct Words {
  static constexpr uint64_t kToBeSeen = 1;  // aligned as no record is

  uint64_t sp = 0;
  std::span<const uint64_t> words;
  uint64_t newest_record = 0;
};

class FrameRecords {
 public:
  // Follows the chain to its end, or to that of `stack`. nullopt where there is none
  // that is whole. Of one that is to be seen nothing is live, for all that is known.
  static std::optional<FrameRecords> Follow(const Landscape& landscape,
                                            const Arch& arch, const Words& stack);

  // Whether the word at `index`, an address behind a call in `object`, was left behind
  // by a function that has returned.
  bool IsLeftBehind(const Arch& arch, const Object& object, uint64_t address,
                    size_t index) const;

 private:
  std::vector<size_t> live_;  // indices of the chain's return addresses, ascending
};

// The code in front of an address of an object, from its file.
std::string_view CodeBefore(const Object& object, uint64_t address);

}  // namespace lull::inject
