// Linker trick: stores into the table through which libunwind.so calls libc.
#include "preload/stacks/libunwind_pipe.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstdint>

#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

constexpr int kNoPipe = -1;

// pipe2(), which libunwind does not check: its descriptors are to be kNoPipe.
int make_no_pipe(int* ends, int) {
  ends[0] = ends[1] = kNoPipe;
  return 0;
}

// What an empty pipe answers. libunwind looks at errno even after a success.
ssize_t read_no_pipe(int fd, void* buffer, size_t size) {
  if (fd != kNoPipe) return syscall(SYS_read, fd, buffer, size);
  errno = EAGAIN;
  return -1;
}

// Readable? The kernel copies the mask in before it rejects `how`, so that EFAULT
// and EINVAL tell one from the other, and nothing changes.
ssize_t write_no_pipe(int fd, const void* buffer, size_t size) {
  if (fd != kNoPipe) return syscall(SYS_write, fd, buffer, size);
  constexpr int kNoSuchHow = -1;
  auto aligned = reinterpret_cast<uintptr_t>(buffer) & ~uintptr_t{7};
  syscall(SYS_rt_sigprocmask, kNoSuchHow, aligned, nullptr, sizeof(uint64_t));
  return errno == EINVAL ? 1 : -1;
}

// libunwind 1.6 writes by a bare system call, and makes no other one so.
long syscall_no_pipe(long number, long a, long b, long c, long d, long e, long f) {
  if (number == SYS_write && static_cast<int>(a) == kNoPipe) {
    return write_no_pipe(kNoPipe, reinterpret_cast<const void*>(b), 1);
  }
  return syscall(number, a, b, c, d, e, f);
}

struct Replacement {
  const char* name;
  void* function;
};
const Replacement kReplacements[] = {
    {"pipe2", reinterpret_cast<void*>(make_no_pipe)},
    {"read", reinterpret_cast<void*>(read_no_pipe)},
    {"write", reinterpret_cast<void*>(write_no_pipe)},
    {"syscall", reinterpret_cast<void*>(syscall_no_pipe)},
};
// Which of them a libunwind must call to be one that we understand.
constexpr uint32_t kPipeAndRead = 0b0011;
constexpr uint32_t kWriteOrSyscall = 0b1100;

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const ElfW(Rela) * calls = nullptr;
  size_t calls_size = 0;
  const ElfW(Rela) * data = nullptr;
  size_t data_size = 0;
};

// glibc has relocated these addresses in place; other loaders have not.
template <typename T>
const T* at(const link_map& object, ElfW(Addr) address) {
  return reinterpret_cast<const T*>(address < object.l_addr ? object.l_addr + address
                                                            : address);
}

Tables tables_of(const link_map& object) {
  Tables tables;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = at<ElfW(Sym)>(object, entry->d_un.d_ptr);
        break;
      case DT_STRTAB:
        tables.strings = at<char>(object, entry->d_un.d_ptr);
        break;
      case DT_JMPREL:
        tables.calls = at<ElfW(Rela)>(object, entry->d_un.d_ptr);
        break;
      case DT_PLTRELSZ:
        tables.calls_size = entry->d_un.d_val;
        break;
      case DT_RELA:
        tables.data = at<ElfW(Rela)>(object, entry->d_un.d_ptr);
        break;
      case DT_RELASZ:
        tables.data_size = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return tables;
}

// The table is read-only where the library was linked with -z now.
bool store(void** slot, void* value) {
  uintptr_t size = getauxval(AT_PAGESZ);
  auto* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(size - 1));
  if (syscall(SYS_mprotect, page, size, PROT_READ | PROT_WRITE) != 0) return false;
  *slot = value;
  return true;
}

uint32_t replace(const link_map& object, const Tables& tables,
                 const ElfW(Rela) * relocations, size_t size) {
  uint32_t replaced = 0;
  for (size_t i = 0; relocations != nullptr && i < size / sizeof(ElfW(Rela)); ++i) {
    const ElfW(Rela)& relocation = relocations[i];
    const ElfW(Sym)& symbol = tables.symbols[ELF64_R_SYM(relocation.r_info)];
    const char* name = tables.strings + symbol.st_name;
    for (size_t which = 0; which < sizeof kReplacements / sizeof *kReplacements;
         ++which) {
      if (strcmp(name, kReplacements[which].name) != 0) continue;
      auto** slot = reinterpret_cast<void**>(object.l_addr + relocation.r_offset);
      if (store(slot, kReplacements[which].function)) replaced |= 1u << which;
    }
  }
  return replaced;
}

}  // namespace

bool take_pipe_from(const link_map& libunwind) {
  Tables tables = tables_of(libunwind);
  if (tables.symbols == nullptr || tables.strings == nullptr) return false;
  uint32_t replaced = replace(libunwind, tables, tables.calls, tables.calls_size) |
                      replace(libunwind, tables, tables.data, tables.data_size);
  return (replaced & kPipeAndRead) == kPipeAndRead && (replaced & kWriteOrSyscall) != 0;
}

}  // namespace lull
