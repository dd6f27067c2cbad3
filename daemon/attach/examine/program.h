// What the ELF header of a program tells: its word size, its machine, its loader.
#pragma once

#include <cstdint>
#include <string>

namespace lull::attach {

struct Program {
  bool known = false;    // it could be read, and is ELF
  int bits = 0;          // 32 or 64
  uint16_t machine = 0;  // EM_X86_64, ...
  // The dynamic loader (PT_INTERP); "" = linked statically, or the loader itself.
  std::string loader;
};

// Never blocks, whatever lies at `path`.
Program ReadProgram(const std::string& path);

// Of the running lull.
int OwnBits();
uint16_t OwnMachine();
// "x86-64", "aarch64", "machine 243".
std::string MachineName(uint16_t machine);

}  // namespace lull::attach
