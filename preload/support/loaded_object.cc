#include "preload/support/loaded_object.h"

namespace lull {
namespace {

struct Search {
  uintptr_t address;
  LoadedObject* found;
};

int visit(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    uintptr_t end = begin + segment.p_memsz;
    if (search->address < begin || search->address >= end) continue;
    *search->found = {info->dlpi_name, begin, end};
    return 1;
  }
  return 0;
}

}  // namespace

bool holds(const dl_phdr_info& object, const void* address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD &&
        reinterpret_cast<uintptr_t>(address) - begin < segment.p_memsz) {
      return true;
    }
  }
  return false;
}

bool find_object(const void* address, LoadedObject* found) {
  Search search = {reinterpret_cast<uintptr_t>(address), found};
  return dl_iterate_phdr(visit, &search) != 0;
}

}  // namespace lull
