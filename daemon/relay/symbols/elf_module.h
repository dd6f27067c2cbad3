// What one ELF file knows about its code: function names from the symbol tables,
// files, lines and inlined calls from DWARF when it is there.
//
// libdwfl's own symbol lookup walks a module's whole table for each address; with
// the hundred thousand symbols of libtorch that is milliseconds a frame, and rings
// fill in 0.4 s. So the table is read once, sorted, and searched by halves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/unique_fd.h"

namespace lull::relay {

struct NativeFrame {
  std::string function;  // demangled; "" = unknown
  std::string file;      // "" = unknown
  int32_t line = 0;
};

class ElfModule {
 public:
  // Reads the file's tables; nullptr when it is no ELF file. DWARF is looked for in the
  // file itself and by build id below /usr/lib/debug. Files of a target are read in a
  // process for that alone, see symbol_reader.h.
  static std::shared_ptr<ElfModule> Open(UniqueFd file);
  ~ElfModule();
  ElfModule(const ElfModule&) = delete;
  ElfModule& operator=(const ElfModule&) = delete;

  // From an offset in the file, as /proc/PID/maps has it, to the file's own
  // virtual address. False when no loaded part holds it.
  bool VirtualAddress(uint64_t file_offset, uint64_t* address) const;

  // Adds the frames at a virtual address, innermost first: inlined calls, then the
  // function itself. Adds nothing when the file does not know the address.
  void Resolve(uint64_t address, std::vector<NativeFrame>* frames) const;

 private:
  class Impl;
  explicit ElfModule(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// _ZN2at4_ops4add_4callE -> at::_ops::add_::call; other names as they are.
std::string Demangle(const char* name);

}  // namespace lull::relay
