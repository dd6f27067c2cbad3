#include "preload/attach/object.h"

#include <elf.h>
#include <sys/auxv.h>

#include <initializer_list>

#include "preload/support/libdl.h"
#include "preload/support/text.h"

namespace lull {
namespace {

// The C library calls itself past any hook, with LD_PRELOAD too; and our own slots are
// how we reach the originals.
bool is_left_alone(const dl_phdr_info& info, const ElfW(Dyn) * dynamic) {
  link_map map{};
  map.l_addr = info.dlpi_addr;
  map.l_name = const_cast<char*>(info.dlpi_name);
  map.l_ld = const_cast<ElfW(Dyn)*>(dynamic);
  const char* soname = libdl::soname_of(map);
  for (const char* name :
       {"ld-linux", "libc.so.", "libpthread.so.", "libdl.so.", "librt.so.",
        "linux-vdso", "libasan", "libtsan", "liblull.so"}) {
    if (starts_with(soname, name)) return true;
  }
  return false;
}

}  // namespace

bool describe(const dl_phdr_info& info, Object* object) {
  *object = {};
  object->base = info.dlpi_addr;
  object->begin = UINTPTR_MAX;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      if (begin < object->begin) object->begin = begin;
      if (begin + segment.p_memsz > object->end) object->end = begin + segment.p_memsz;
    } else if (segment.p_type == PT_GNU_RELRO) {
      // Whole pages, as the loader protects them; those of aarch64 may have 64 KiB.
      const uintptr_t page = getauxval(AT_PAGESZ);
      object->relro_begin = begin & ~(page - 1);
      object->relro_end = (begin + segment.p_memsz) & ~(page - 1);
    } else if (segment.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    }
  }
  if (dynamic == nullptr || is_left_alone(info, dynamic)) return false;
  object->dynamic = dynamic;
  size_t rela_bytes = 0, relative = 0, plt_bytes = 0, string_bytes = 0,
         plt_kind = DT_RELA;
  auto pointer = [&](const ElfW(Dyn) * entry) {
    uintptr_t value = entry->d_un.d_ptr;
    return value < info.dlpi_addr ? value + info.dlpi_addr : value;
  };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        object->symbols = reinterpret_cast<const ElfW(Sym)*>(pointer(dynamic));
        break;
      case DT_STRTAB:
        object->strings = reinterpret_cast<const char*>(pointer(dynamic));
        break;
      case DT_STRSZ:
        string_bytes = dynamic->d_un.d_val;
        break;
      case DT_RELA:
        object->tables[0].entries =
            reinterpret_cast<const ElfW(Rela)*>(pointer(dynamic));
        break;
      case DT_RELASZ:
        rela_bytes = dynamic->d_un.d_val;
        break;
      case DT_RELACOUNT:
        relative = dynamic->d_un.d_val;
        break;
      case DT_JMPREL:
        object->tables[1].entries =
            reinterpret_cast<const ElfW(Rela)*>(pointer(dynamic));
        break;
      case DT_PLTRELSZ:
        plt_bytes = dynamic->d_un.d_val;
        break;
      case DT_PLTREL:
        plt_kind = dynamic->d_un.d_val;
        break;
    }
  }
  if (object->symbols == nullptr || object->strings == nullptr) return false;
  object->strings_end = object->strings + string_bytes;
  if (object->tables[0].entries != nullptr) {
    // The first ones name no symbol.
    size_t count = rela_bytes / sizeof(ElfW(Rela));
    if (relative > count) relative = count;
    object->tables[0].entries += relative;
    object->tables[0].count = count - relative;
  }
  if (object->tables[1].entries != nullptr && plt_kind == DT_RELA) {
    object->tables[1].count = plt_bytes / sizeof(ElfW(Rela));
  }
  return true;
}

}  // namespace lull
