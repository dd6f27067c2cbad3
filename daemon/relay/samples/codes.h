// The code objects of one process, as they were read from its memory: each once, as
// long as it is the same.
//
// A code object is known by its address, by the addresses of its texts and by its first
// line. Addresses come back: code that is made and dropped in a loop (exec, lambdas)
// gets the same ones again, also for its texts. So each look compares all of that, and
// how the texts begin, while the code is young; and for ever at an address where code
// was found to have changed. Once code has been there for a second, its address is
// trusted for 100 ms and its texts for ten seconds: each piece that is read costs a
// look up to 1 us.
//
// All that is read is hostile: lengths are bounded, and nothing is followed that is not
// where an object can be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/relay/samples/layout.h"
#include "daemon/relay/samples/memory.h"

namespace lull::relay {

// How a report names a frame. Different code objects may share a name.
struct FrameName {
  std::string function;
  std::string file;
};

class CodeBook {
 public:
  explicit CodeBook(const FrameLayout& layout) : layout_(layout) {}

  // Forgets all code when there is too much of it: what still runs comes again. Numbers
  // from before are not valid any more; those of names are.
  void Trim();
  // Adds what must be read of the code object at `address` for Known() to decide.
  // Returns how many pieces that were.
  size_t Expect(uint64_t address, uint64_t now_ns, std::vector<Piece>* pieces);
  struct Found {
    uint32_t number = 0;    // 0: there is no code object, or its texts cannot be read
    bool doubtful = false;  // new, or often another one: it may have come just now
  };
  // `bytes`: what was read of them. What is new is read from `memory`.
  Found Resolve(uint64_t address, size_t pieces, const char* bytes, uint64_t now_ns,
                TargetMemory* memory);

  // The line of an instruction. `code`: a number that Resolve() returned.
  int32_t Line(uint32_t code, int32_t lasti);
  uint32_t NameOf(uint32_t code) const { return codes_[code].name; }
  const FrameName& Name(uint32_t name) const { return names_[name]; }

 private:
  struct Head {
    uint64_t type = 0, filename = 0, name = 0, line_table = 0;
    int32_t first_line = 0;

    bool operator==(const Head&) const = default;
  };
  // Bytes of what is read of a code object, from an offset on: what lies between may
  // change (the hash of a str).
  struct Expected {
    size_t offset;
    std::string bytes;
  };
  struct Slot {
    Head head;
    uint32_t code = 0;
    uint64_t since_ns = 0;
    uint64_t head_ns = 0;       // when it was compared last
    uint64_t texts_ns = 0;      // the same of its texts
    bool fickle = false;        // another one has taken its place before
    std::vector<Piece> checks;  // of its texts
    std::vector<Expected> expected;
  };
  struct Code {
    uint32_t name = 0;
    int32_t first_line = 0;
    std::optional<std::string> line_table;  // nullopt: too large to be read
    absl::flat_hash_map<int32_t, int32_t> lines;
  };

  static bool IsYoung(const Slot& slot, uint64_t now_ns);
  Head HeadIn(const char* bytes) const;
  // Texts and their checks; `slot->checks` and the head are what is read before them.
  void AddCheck(uint64_t first, uint64_t size_at, uint64_t size, uint64_t data_at,
                const std::string& data, Slot* slot) const;
  bool ReadText(uint64_t object, size_t limit, TargetMemory* memory, std::string* text,
                Slot* slot) const;
  // nullopt in *data: there are more than `limit`.
  bool ReadBytes(uint64_t object, size_t limit, TargetMemory* memory,
                 std::optional<std::string>* data, Slot* slot) const;
  bool ReadNew(uint64_t address, const Head& head, TargetMemory* memory, Slot* slot);
  uint32_t NumberOfName(FrameName name);

  const FrameLayout layout_;
  absl::flat_hash_map<uint64_t, Slot> slots_;  // by address
  std::vector<Code> codes_{1};                 // 0: none
  std::vector<FrameName> names_{1};
  size_t code_bytes_ = 0;
  size_t name_bytes_ = 0;
  absl::flat_hash_map<std::pair<std::string, std::string>, uint32_t> numbers_;
};

}  // namespace lull::relay
