#include "preload/support/symbols.h"

#include <link.h>

#include <atomic>
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
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* old_hash = nullptr;  // DT_HASH, where there is no other
  const ElfW(Half) * versions = nullptr;
  const ElfW(Verdef) * version_names = nullptr;

  bool complete() const {
    return symbols != nullptr && strings != nullptr &&
           (gnu_hash != nullptr || old_hash != nullptr);
  }
};

// What is looked for.
struct Wanted {
  const char* name;
  const char* version;  // nullptr: the default one
  bool objects;         // variables, too
};

// Not strcmp: a sanitizer may have put itself before it, and not be ready yet.
bool same(const char* left, const char* right) {
  for (; *left == *right; ++left, ++right) {
    if (*left == 0) return true;
  }
  return false;
}

uint32_t gnu_hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

uint32_t old_hash_of(const char* name) {
  uint32_t hash = 0;
  for (; *name != 0; ++name) {
    hash = (hash << 4) + static_cast<unsigned char>(*name);
    uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ high >> 24) & ~high;
  }
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
        table.gnu_hash = reinterpret_cast<const uint32_t*>(pointer(dynamic));
        break;
      case DT_HASH:
        table.old_hash = reinterpret_cast<const uint32_t*>(pointer(dynamic));
        break;
      case DT_VERSYM:
        table.versions = reinterpret_cast<const ElfW(Half)*>(pointer(dynamic));
        break;
      case DT_VERDEF:
        table.version_names = reinterpret_cast<const ElfW(Verdef)*>(pointer(dynamic));
        break;
    }
  }
  return table;
}

// As the loader does: an object without versions has every version.
bool has_version(const SymbolTable& table, uint32_t index, const char* version) {
  if (table.versions == nullptr) return true;
  ElfW(Half) number = table.versions[index];
  // A hidden one is kept for old programs only: not the default version.
  if (version == nullptr) return (number & kHiddenVersion) == 0;
  const ElfW(Verdef)* definition = table.version_names;
  while (definition != nullptr) {
    auto* at = reinterpret_cast<const char*>(definition);
    if (definition->vd_ndx == (number & ~kHiddenVersion)) {
      // The object's own name, which need not differ from a version's.
      if ((definition->vd_flags & VER_FLG_BASE) != 0) return false;
      auto* name = reinterpret_cast<const ElfW(Verdaux)*>(at + definition->vd_aux);
      return same(table.strings + name->vda_name, version);
    }
    definition = definition->vd_next == 0
                     ? nullptr
                     : reinterpret_cast<const ElfW(Verdef)*>(at + definition->vd_next);
  }
  return false;
}

bool is_wanted(const SymbolTable& table, uint32_t index, const Wanted& wanted) {
  const ElfW(Sym)& symbol = table.symbols[index];
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return false;
  int type = ELF64_ST_TYPE(symbol.st_info);
  bool fits = type == STT_FUNC || type == STT_GNU_IFUNC ||
              (wanted.objects && type == STT_OBJECT);
  return fits && same(table.strings + symbol.st_name, wanted.name) &&
         has_version(table, index, wanted.version);
}

// The layout of DT_GNU_HASH: four words, a bloom filter, buckets, chains.
const ElfW(Sym) * look_up_gnu(const SymbolTable& table, const Wanted& wanted) {
  uint32_t hash = gnu_hash_of(wanted.name);
  const uint32_t buckets = table.gnu_hash[0], first = table.gnu_hash[1];
  const uint32_t bloom_words = table.gnu_hash[2], shift = table.gnu_hash[3];
  if (buckets == 0 || bloom_words == 0) return nullptr;
  auto* bloom = reinterpret_cast<const ElfW(Addr)*>(table.gnu_hash + 4);
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
    if ((entry | 1) == (hash | 1) && is_wanted(table, index, wanted)) {
      return &table.symbols[index];
    }
    if ((entry & 1) != 0) return nullptr;  // the end of the chain
  }
}

// The layout of DT_HASH: two counts, buckets, chains.
const ElfW(Sym) * look_up_old(const SymbolTable& table, const Wanted& wanted) {
  const uint32_t buckets = table.old_hash[0], symbols = table.old_hash[1];
  if (buckets == 0) return nullptr;
  const uint32_t* bucket = table.old_hash + 2;
  const uint32_t* chain = bucket + buckets;
  uint32_t index = bucket[old_hash_of(wanted.name) % buckets];
  for (; index != STN_UNDEF && index < symbols; index = chain[index]) {
    if (is_wanted(table, index, wanted)) return &table.symbols[index];
  }
  return nullptr;
}

const ElfW(Sym) * look_up(const SymbolTable& table, const Wanted& wanted) {
  if (!table.complete()) return nullptr;
  return table.gnu_hash != nullptr ? look_up_gnu(table, wanted)
                                   : look_up_old(table, wanted);
}

// Null for a function that is chosen when it is bound: that takes a call.
void* address_of(const dl_phdr_info& info, const ElfW(Sym) & symbol) {
  if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC) return nullptr;
  return reinterpret_cast<void*>(info.dlpi_addr + symbol.st_value);
}

// --- a table of symbols -----------------------------------------------------------

struct TableSearch {
  NextSymbol* symbols;
  size_t count;
  bool behind_us;
};

// True: none is left to be found.
bool fill_from(const dl_phdr_info& info, NextSymbol* symbols, size_t count,
               bool objects) {
  SymbolTable table = table_of(info);
  bool complete = true;
  for (size_t i = 0; i < count; ++i) {
    if (symbols[i].address != nullptr) continue;
    const ElfW(Sym)* found = look_up(table, {symbols[i].name, nullptr, objects});
    if (found != nullptr) symbols[i].address = address_of(info, *found);
    complete = complete && symbols[i].address != nullptr;
  }
  return complete;
}

int visit_next(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<TableSearch*>(argument);
  if (holds(*info, &__ehdr_start)) {
    search->behind_us = true;
    return 0;
  }
  return search->behind_us &&
         fill_from(*info, search->symbols, search->count, /*objects=*/false);
}

struct LandmarkSearch {
  const char* landmark;
  NextSymbol* symbols;
  size_t count;
};

int has_landmark(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<LandmarkSearch*>(argument);
  return look_up(table_of(*info), {search->landmark, nullptr, false}) != nullptr;
}

int visit_up_to(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<LandmarkSearch*>(argument);
  if (holds(*info, &__ehdr_start)) return 0;
  fill_from(*info, search->symbols, search->count, /*objects=*/true);
  return has_landmark(info, 0, search);
}

// --- one function
// -----------------------------------------------------------------

constexpr uint32_t kNotNoted = UINT32_MAX;
std::atomic<uint32_t> g_objects_of_the_program{kNotNoted};

struct FunctionSearch {
  Wanted wanted;
  uint32_t number;  // of the object that is looked at
  bool behind_us;
  uint32_t candidates;
  void* first;
  bool first_is_of_the_program;
};

int visit_function(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<FunctionSearch*>(argument);
  uint32_t number = search->number++;
  if (holds(*info, &__ehdr_start)) {
    search->behind_us = true;
    return 0;
  }
  if (!search->behind_us) return 0;
  const ElfW(Sym)* found = look_up(table_of(*info), search->wanted);
  if (found == nullptr) return 0;
  if (search->candidates++ > 0) return 1;
  search->first = address_of(*info, *found);
  search->first_is_of_the_program =
      number < g_objects_of_the_program.load(std::memory_order_relaxed) &&
      !libdl::loaded_late();
  return search->first_is_of_the_program;
}

struct NeighbourSearch {
  const void* address;
  Wanted wanted;
  void* found;
};

int visit_neighbour(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<NeighbourSearch*>(argument);
  if (!holds(*info, search->address)) return 0;
  const ElfW(Sym)* symbol = look_up(table_of(*info), search->wanted);
  if (symbol != nullptr) search->found = address_of(*info, *symbol);
  return 1;
}

int count_object(dl_phdr_info*, size_t, void* count) {
  ++*static_cast<uint32_t*>(count);
  return 0;
}

}  // namespace

void find_next_symbols(NextSymbol* symbols, size_t count) {
  TableSearch search = {symbols, count, libdl::loaded_late()};
  dl_iterate_phdr(visit_next, &search);
}

bool find_symbols_with(const char* landmark, NextSymbol* symbols, size_t count) {
  LandmarkSearch search = {landmark, symbols, count};
  return dl_iterate_phdr(has_landmark, &search) != 0 &&
         dl_iterate_phdr(visit_up_to, &search) != 0;
}

NextFunction find_next_function(const char* name, const char* version) {
  FunctionSearch search = {};
  search.wanted = {name, version, false};
  search.behind_us = libdl::loaded_late();
  dl_iterate_phdr(visit_function, &search);
  // A function that is chosen when it is bound has no address for us.
  bool known = search.candidates == 0 || search.first != nullptr;
  return {search.first,
          known && (search.candidates <= 1 || search.first_is_of_the_program)};
}

void* next_function(const char* name, const char* version) {
  NextFunction next = find_next_function(name, version);
  return next.sure ? next.address : libdl::beyond_us(name, version);
}

void* symbol_beside(const void* address, const char* name) {
  NeighbourSearch search = {address, {name, nullptr, /*objects=*/true}, nullptr};
  dl_iterate_phdr(visit_neighbour, &search);
  return search.found;
}

void note_objects_of_the_program() {
  uint32_t count = 0;
  dl_iterate_phdr(count_object, &count);
  g_objects_of_the_program.store(count, std::memory_order_relaxed);
}

}  // namespace lull
