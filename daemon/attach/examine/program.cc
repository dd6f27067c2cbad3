#include "daemon/attach/examine/program.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/unique_fd.h"

namespace lull::attach {
namespace {

constexpr size_t kMaxHeaders = 256;
constexpr size_t kMaxLoader = 4096;

bool ReadAt(int fd, uint64_t offset, void* out, size_t size) {
  return pread(fd, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// The file belongs to somebody else: every number is checked before it is used.
template <typename Header, typename Segment>
void ReadLoader(int fd, Program* program) {
  Header header;
  if (!ReadAt(fd, 0, &header, sizeof(header))) return;
  program->machine = header.e_machine;
  program->known = true;
  if (header.e_phentsize != sizeof(Segment)) return;
  size_t count = std::min<size_t>(header.e_phnum, kMaxHeaders);
  for (size_t i = 0; i < count; ++i) {
    Segment segment;
    if (!ReadAt(fd, header.e_phoff + i * sizeof(segment), &segment, sizeof(segment))) {
      return;
    }
    if (segment.p_type != PT_INTERP || segment.p_filesz == 0) continue;
    std::string path(std::min<size_t>(segment.p_filesz, kMaxLoader), '\0');
    if (ReadAt(fd, segment.p_offset, path.data(), path.size())) {
      program->loader = path.c_str();  // up to its zero
    }
    return;
  }
}

}  // namespace

Program ReadProgram(const std::string& path) {
  Program program;
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  unsigned char identity[EI_NIDENT];
  if (!file || !ReadAt(file.get(), 0, identity, sizeof(identity)) ||
      memcmp(identity, ELFMAG, SELFMAG) != 0) {
    return program;
  }
  if (identity[EI_CLASS] == ELFCLASS64) {
    program.bits = 64;
    ReadLoader<Elf64_Ehdr, Elf64_Phdr>(file.get(), &program);
  } else if (identity[EI_CLASS] == ELFCLASS32) {
    program.bits = 32;
    ReadLoader<Elf32_Ehdr, Elf32_Phdr>(file.get(), &program);
  }
  return program;
}

int OwnBits() { return static_cast<int>(8 * sizeof(void*)); }

uint16_t OwnMachine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#else
#error "attach: unknown architecture"
#endif
}

std::string MachineName(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "x86";
    case EM_ARM:
      return "arm";
    default:
      return absl::StrCat("machine ", machine);
  }
}

}  // namespace lull::attach
