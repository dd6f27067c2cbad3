// Linker trick: stores into the table through which libunwind.so calls libc.
#include "preload/stacks/libunwind_calls.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstdint>

#include "preload/support/libdl.h"
#include "preload/support/raw_syscall.h"
#include "preload/support/relocation_kinds.h"

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

// What stays the program's: one heap, and its view of what is loaded.
const char* const kOfTheProgram[] = {"malloc", "calloc", "realloc", "free",
                                     "dl_iterate_phdr"};

bool is_of_the_program(const char* name) {
  for (const char* one : kOfTheProgram) {
    if (strcmp(name, one) == 0) return true;
  }
  return false;
}

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

class Redirection {
 public:
  // By a handle from dlopen: libc's link_map, as it is, has no search list for dlsym.
  explicit Redirection(const link_map& object)
      : object_(object),
        tables_(tables_of(object)),
        look_up_(libdl::real_dlsym()),
        libc_(libdl::open("libc.so.6", RTLD_LAZY | RTLD_NOLOAD)) {}

  // True: every call leads where it should.
  bool done() {
    if (tables_.symbols == nullptr || tables_.strings == nullptr) return false;
    if (look_up_ == nullptr || libc_ == nullptr) return false;
    bool stored = redirect(tables_.calls, tables_.calls_size) &&
                  redirect(tables_.data, tables_.data_size);
    libdl::error();  // what is not in libc leaves no message to the program
    return stored && (replaced_ & kPipeAndRead) == kPipeAndRead &&
           (replaced_ & kWriteOrSyscall) != 0;
  }

 private:
  // nullptr: the call stays as it is.
  void* target_of(const char* name) {
    for (size_t which = 0; which < sizeof kReplacements / sizeof *kReplacements;
         ++which) {
      if (strcmp(name, kReplacements[which].name) != 0) continue;
      replaced_ |= 1u << which;
      return kReplacements[which].function;
    }
    return is_of_the_program(name) ? nullptr : look_up_(libc_, name);
  }

  bool redirect(const ElfW(Rela) * relocations, size_t size) {
    for (size_t i = 0; relocations != nullptr && i < size / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& relocation = relocations[i];
      uint32_t type = ELF64_R_TYPE(relocation.r_info);
      if (type == kThreadModule || type == kThreadDescriptor) return false;
      if (type != kJumpSlot && type != kGlobalData) continue;
      const ElfW(Sym)& symbol = tables_.symbols[ELF64_R_SYM(relocation.r_info)];
      if (symbol.st_shndx != SHN_UNDEF) continue;
      void* target = target_of(tables_.strings + symbol.st_name);
      auto** slot = reinterpret_cast<void**>(object_.l_addr + relocation.r_offset);
      if (target != nullptr && !store(slot, target)) return false;
    }
    return true;
  }

  const link_map& object_;
  Tables tables_;
  libdl::Dlsym look_up_;
  void* libc_;
  uint32_t replaced_ = 0;
};

}  // namespace

bool redirect_calls_of(const link_map& libunwind) {
  return Redirection(libunwind).done();
}

}  // namespace lull
