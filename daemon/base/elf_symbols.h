// The symbols of an ELF file that is open in libelf: those that are defined, of .symtab
// and of .dynsym in the order of the file. Hostile files are expected: what libelf
// finds broken is passed over.
#pragma once

#include <gelf.h>

#include <cstddef>

namespace lull {

// `visit(size_t names, const GElf_Sym&)`: elf_strptr(elf, names, symbol.st_name) is the
// name, which is not looked at, and so not read from the disk.
template <typename Visit>
void ForEachElfSymbolUnnamed(Elf* elf, const Visit& visit) {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0 ||
        (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)) {
      continue;
    }
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr) continue;
    for (size_t i = 0; i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (symbol.st_shndx != SHN_UNDEF) visit(size_t{header.sh_link}, symbol);
    }
  }
}

// `visit(const char* name, const GElf_Sym&)` for each that has a name. The names live
// as long as `elf`.
template <typename Visit>
void ForEachElfSymbol(Elf* elf, const Visit& visit) {
  ForEachElfSymbolUnnamed(elf, [&](size_t names, const GElf_Sym& symbol) {
    const char* name = elf_strptr(elf, names, symbol.st_name);
    if (name != nullptr && name[0] != '\0') visit(name, symbol);
  });
}

}  // namespace lull
