#include "preload/support/next_symbol.h"

#include <link.h>

#include <cstdint>

#include "preload/support/libdl.h"
#include "preload/support/loaded_object.h"
#include "preload/support/own_code.h"

namespace lull {
namespace {

constexpr ElfW(Half) kHiddenVersion = 0x8000;

// The look-up tables of one object, out of its dynamic section.
struct SymbolTable {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* hash = nullptr;  // DT_GNU_HASH
  const ElfW(Half) * versions = nullptr;
};

// Not strcmp: a sanitizer may have put itself before it, and not be ready yet.
bool same(const char* left, const char* right) {
  for (; *left == *right; ++left, ++right) {
    if (*left == 0) return true;
  }
  return false;
}

uint32_t gnu_hash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

SymbolTable table_of(const dl_phdr_info& info) {
  SymbolTable table;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr +
                                                   info.dlpi_phdr[i].p_vaddr);
    }
  }
  if (dynamic == nullptr) return table;
  // glibc has relocated these pointers in place, but for read-only sections (vdso).
  auto pointer = [&](const ElfW(Dyn) * entry) {
    uintptr_t value = entry->d_un.d_ptr;
    return value < info.dlpi_addr ? value + info.dlpi_addr : value;
  };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        table.symbols = reinterpret_cast<const ElfW(Sym)*>(pointer(dynamic));
        break;
      case DT_STRTAB:
        table.strings = reinterpret_cast<const char*>(pointer(dynamic));
        break;
      case DT_GNU_HASH:
        table.hash = reinterpret_cast<const uint32_t*>(pointer(dynamic));
        break;
      case DT_VERSYM:
        table.versions = reinterpret_cast<const ElfW(Half)*>(pointer(dynamic));
        break;
    }
  }
  return table;
}

bool is_wanted(const SymbolTable& table, uint32_t index, const char* name) {
  const ElfW(Sym)& symbol = table.symbols[index];
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return false;
  if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return false;
  if (table.versions != nullptr && (table.versions[index] & kHiddenVersion) != 0) {
    return false;  // kept for old programs only: not the default version
  }
  return same(table.strings + symbol.st_name, name);
}

// The layout of DT_GNU_HASH: four words, a bloom filter, buckets, chains.
const ElfW(Sym) * look_up(const SymbolTable& table, const char* name, uint32_t hash) {
  const uint32_t buckets = table.hash[0], first = table.hash[1];
  const uint32_t bloom_words = table.hash[2], shift = table.hash[3];
  if (buckets == 0 || bloom_words == 0) return nullptr;
  auto* bloom = reinterpret_cast<const ElfW(Addr)*>(table.hash + 4);
  constexpr uint32_t kBits = 8 * sizeof(ElfW(Addr));
  ElfW(Addr) word = bloom[hash / kBits % bloom_words];
  if (((word >> (hash % kBits)) & (word >> ((hash >> shift) % kBits)) & 1) == 0) {
    return nullptr;
  }
  auto* bucket = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
  const uint32_t* chain = bucket + buckets;
  uint32_t index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    uint32_t entry = chain[index - first];
    if ((entry | 1) == (hash | 1) && is_wanted(table, index, name)) {
      return &table.symbols[index];
    }
    if ((entry & 1) != 0) return nullptr;  // the end of the chain
  }
}

struct Search {
  NextSymbol* symbols;
  size_t count;
  bool behind_us;
};

int visit(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  if (holds(*info, &__ehdr_start)) {
    search->behind_us = true;
    return 0;
  }
  if (!search->behind_us) return 0;
  SymbolTable table = table_of(*info);
  if (!table.symbols || !table.strings || !table.hash) return 0;
  bool complete = true;
  for (size_t i = 0; i < search->count; ++i) {
    NextSymbol& wanted = search->symbols[i];
    if (wanted.address != nullptr) continue;
    const ElfW(Sym)* symbol = look_up(table, wanted.name, gnu_hash(wanted.name));
    if (symbol == nullptr) {
      complete = false;
    } else {
      wanted.address = reinterpret_cast<void*>(info->dlpi_addr + symbol->st_value);
    }
  }
  return complete ? 1 : 0;
}

}  // namespace

void find_next_symbols(NextSymbol* symbols, size_t count) {
  Search search = {symbols, count, libdl::loaded_late()};
  dl_iterate_phdr(visit, &search);
}

}  // namespace lull
