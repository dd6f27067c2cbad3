// Files, lines and inlined calls of one DWARF object, by address.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "daemon/relay/symbols/elf_module.h"

namespace lull::relay {

class DwarfLines {
 public:
  // Takes `dwarf` over. Reads the address ranges of every unit once; clang leaves
  // .debug_aranges out, so that table is not relied on.
  explicit DwarfLines(Dwarf* dwarf);
  ~DwarfLines();
  DwarfLines(const DwarfLines&) = delete;
  DwarfLines& operator=(const DwarfLines&) = delete;

  // The frames at `address`, innermost first; the last one is the function that
  // really exists. Empty when no unit holds the address.
  std::vector<NativeFrame> Resolve(uint64_t address) const;

 private:
  struct Unit {
    uint64_t start;
    uint64_t end;
    Dwarf_Off offset;  // of the unit's DIE
  };
  const Unit* FindUnit(uint64_t address) const;

  Dwarf* dwarf_;
  std::vector<Unit> units_;  // by start
};

}  // namespace lull::relay
