#include "daemon/relay/symbols/elf_module.h"

#include <cxxabi.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/elf_symbols.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/dwarf_lines.h"

namespace lull::relay {
namespace {

// Reading the line tables of larger ones would hold the rings up for seconds.
constexpr uint64_t kMaxDebugInfoBytes = 512u << 20;

// Names are looked up when they are asked for: those of libtorch_cpu are 77 MB of
// string table, of which a job shows some pages. Reading its symbols takes 18 ms of
// processor and sorting them 25; with a look at each name reading took 47.
struct Symbol {
  uint64_t start;
  uint64_t size;
  uint32_t name;  // in its table
  uint32_t table;
};

// Where names are: a section of a file that is open.
struct NameTable {
  Elf* elf;
  size_t section;

  bool operator==(const NameTable&) const = default;
};

struct LoadedPart {
  uint64_t offset;
  uint64_t size;
  uint64_t address;
};

void ReadSymbols(Elf* elf, std::vector<NameTable>* tables,
                 std::vector<Symbol>* symbols) {
  ForEachElfSymbolUnnamed(elf, [&](size_t names, const GElf_Sym& symbol) {
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC) return;
    if (symbol.st_name == 0) return;  // none
    const NameTable table{elf, names};
    if (tables->empty() || tables->back() != table) tables->push_back(table);
    symbols->push_back({symbol.st_value, symbol.st_size, symbol.st_name,
                        static_cast<uint32_t>(tables->size() - 1)});
  });
}

void SortSymbols(std::vector<Symbol>* symbols) {
  auto by_start = [](const Symbol& a, const Symbol& b) { return a.start < b.start; };
  std::stable_sort(symbols->begin(), symbols->end(), by_start);
  symbols->shrink_to_fit();
}

uint64_t DebugInfoBytes(Elf* elf) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return 0;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr && strcmp(name, ".debug_info") == 0) return header.sh_size;
  }
  return 0;
}

// None where there is none.
UniqueFd OpenDebugFile(Elf* elf) {
  const void* bytes = nullptr;
  ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
  if (size < 2) return UniqueFd();
  std::string id = absl::BytesToHexString(
      absl::string_view(static_cast<const char*>(bytes), static_cast<size_t>(size)));
  std::string path = absl::StrCat("/usr/lib/debug/.build-id/", id.substr(0, 2), "/",
                                  id.substr(2), ".debug");
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return UniqueFd();
  }
  return file;
}

// A file opened through libelf; the mapping lives as long as this.
struct ElfFile {
  explicit ElfFile(UniqueFd file) : fd(std::move(file)) {
    elf_version(EV_CURRENT);
    if (fd) elf = elf_begin(fd.get(), ELF_C_READ_MMAP, nullptr);
    if (elf != nullptr && elf_kind(elf) != ELF_K_ELF) {
      elf_end(elf);
      elf = nullptr;
    }
  }
  ~ElfFile() {
    if (elf != nullptr) elf_end(elf);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  UniqueFd fd;
  Elf* elf = nullptr;
};

std::unique_ptr<DwarfLines> OpenDwarf(Elf* elf) {
  uint64_t bytes = DebugInfoBytes(elf);
  if (bytes == 0 || bytes > kMaxDebugInfoBytes) return nullptr;
  Dwarf* dwarf = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  return dwarf == nullptr ? nullptr : std::make_unique<DwarfLines>(dwarf);
}

}  // namespace

class ElfModule::Impl {
 public:
  explicit Impl(UniqueFd fd) : file(std::move(fd)) {}

  // "" where no symbol holds the address.
  std::string NameAt(uint64_t address) const;

  ElfFile file;
  std::unique_ptr<ElfFile> debug_file;
  std::unique_ptr<DwarfLines> dwarf;  // before the files go
  std::vector<NameTable> tables;
  // By address, and of one address in the order of the files: the first that has a name
  // counts.
  std::vector<Symbol> symbols;
  std::vector<LoadedPart> parts;
};

std::string ElfModule::Impl::NameAt(uint64_t address) const {
  auto after = std::upper_bound(
      symbols.begin(), symbols.end(), address,
      [](uint64_t value, const Symbol& symbol) { return value < symbol.start; });
  if (after == symbols.begin()) return "";
  const uint64_t start = (after - 1)->start;
  auto first =
      std::lower_bound(symbols.begin(), after, start,
                       [](const Symbol& s, uint64_t value) { return s.start < value; });
  for (; first != after; ++first) {
    const NameTable& table = tables[first->table];
    const char* text = elf_strptr(table.elf, table.section, first->name);
    if (text == nullptr || text[0] == '\0') continue;
    // A size of 0 is usual in assembly: such a symbol reaches to the next one.
    const bool holds = first->size == 0 || address - start < first->size;
    return holds ? Demangle(text) : "";
  }
  return "";
}

ElfModule::ElfModule(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ElfModule::~ElfModule() = default;

std::shared_ptr<ElfModule> ElfModule::Open(UniqueFd file) {
  auto impl = std::make_unique<Impl>(std::move(file));
  Elf* elf = impl->file.elf;
  size_t headers = 0;
  if (elf == nullptr || elf_getphdrnum(elf, &headers) != 0) return nullptr;
  for (size_t i = 0; i < headers; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) break;
    if (header.p_type != PT_LOAD) continue;
    impl->parts.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
  }
  ReadSymbols(elf, &impl->tables, &impl->symbols);
  impl->dwarf = OpenDwarf(elf);
  if (impl->dwarf == nullptr) {
    UniqueFd debug_file = OpenDebugFile(elf);
    if (debug_file) {
      impl->debug_file = std::make_unique<ElfFile>(std::move(debug_file));
      if (impl->debug_file->elf != nullptr) {
        ReadSymbols(impl->debug_file->elf, &impl->tables, &impl->symbols);
        impl->dwarf = OpenDwarf(impl->debug_file->elf);
      }
    }
  }
  SortSymbols(&impl->symbols);
  return std::shared_ptr<ElfModule>(new ElfModule(std::move(impl)));
}

bool ElfModule::VirtualAddress(uint64_t file_offset, uint64_t* address) const {
  for (const LoadedPart& part : impl_->parts) {
    // The kernel maps whole pages: a part reaches down to its page's start.
    uint64_t slack = part.offset % static_cast<uint64_t>(getpagesize());
    if (file_offset + slack >= part.offset && file_offset < part.offset + part.size) {
      *address = file_offset - part.offset + part.address;
      return true;
    }
  }
  return false;
}

void ElfModule::Resolve(uint64_t address, std::vector<NativeFrame>* frames) const {
  std::string name = impl_->NameAt(address);
  if (impl_->dwarf != nullptr) {
    std::vector<NativeFrame> lines = impl_->dwarf->Resolve(address);
    if (!lines.empty()) {
      // The symbol's name carries the parameters also where DWARF has none.
      if (!name.empty()) lines.back().function = name;
      for (NativeFrame& frame : lines) frames->push_back(std::move(frame));
      return;
    }
  }
  if (!name.empty()) frames->push_back({std::move(name), "", 0});
}

std::string Demangle(const char* name) {
  if (name[0] != '_' || name[1] != 'Z') return name;
  int status = 0;
  char* readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && readable != nullptr ? readable : name;
  free(readable);
  return result;
}

}  // namespace lull::relay
