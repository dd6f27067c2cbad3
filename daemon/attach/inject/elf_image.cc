#include "daemon/attach/inject/elf_image.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/elf_symbols.h"

namespace lull::inject {

std::shared_ptr<const ElfImage> ElfImage::Open(const std::string& path) {
  std::shared_ptr<ElfImage> image(new ElfImage);
  image->path_ = path;
  image->fd_.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts;
  if (!image->fd_ || fstat(image->fd_.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return nullptr;
  }
  image->device_ = facts.st_dev;
  image->inode_ = facts.st_ino;
  elf_version(EV_CURRENT);
  image->elf_ = elf_begin(image->fd_.get(), ELF_C_READ_MMAP, nullptr);
  return image->elf_ != nullptr && image->Read() ? image : nullptr;
}

ElfImage::~ElfImage() { elf_end(elf_); }

bool ElfImage::Read() {
  GElf_Ehdr header;
  if (gelf_getehdr(elf_, &header) == nullptr ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return false;
  }
  size_t count = 0;
  if (elf_getphdrnum(elf_, &count) != 0) return false;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr part;
    if (gelf_getphdr(elf_, static_cast<int>(i), &part) == nullptr) return false;
    if (part.p_type == PT_LOAD) {
      parts_.push_back(
          {part.p_offset, part.p_filesz, part.p_vaddr, (part.p_flags & PF_X) != 0});
    }
  }
  const void* id = nullptr;
  ssize_t size = dwelf_elf_gnu_build_id(elf_, &id);
  if (size > 0) build_id_.assign(static_cast<const char*>(id), size);
  ReadDynamic();
  return true;
}

void ElfImage::ReadDynamic() {
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf_, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNAMIC ||
        header.sh_entsize == 0) {
      continue;
    }
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr) continue;
    for (size_t i = 0; i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Dyn entry;
      if (gelf_getdyn(data, static_cast<int>(i), &entry) == nullptr) break;
      if (entry.d_tag != DT_SONAME) continue;
      const char* name = elf_strptr(elf_, header.sh_link, entry.d_un.d_val);
      if (name != nullptr) soname_ = name;
    }
  }
}

void ElfImage::ForEachSymbol(
    absl::FunctionRef<void(std::string_view, const Symbol&)> visit) const {
  ForEachElfSymbol(elf_, [&](const char* name, const GElf_Sym& symbol) {
    if (symbol.st_value == 0) return;
    visit(name,
          {symbol.st_value, symbol.st_size, GELF_ST_TYPE(symbol.st_info) == STT_FUNC});
  });
}

std::optional<Symbol> ElfImage::Exported(std::string_view name) const {
  std::optional<Symbol> found;
  ForEachSymbol([&](std::string_view other, const Symbol& symbol) {
    if (!found && other == name) found = symbol;
  });
  return found;
}

std::optional<uint64_t> ElfImage::AddressOf(uint64_t offset) const {
  for (const Part& part : parts_) {
    if (!part.executable) continue;
    // A mapping begins at a page, and its part perhaps behind that.
    uint64_t slack = part.offset % static_cast<uint64_t>(getpagesize());
    if (offset + slack >= part.offset && offset < part.offset + part.size) {
      return part.address - part.offset + offset;
    }
  }
  return std::nullopt;
}

std::string_view ElfImage::BytesAt(uint64_t address) const {
  size_t size = 0;
  const char* raw = elf_rawfile(elf_, &size);
  for (const Part& part : parts_) {
    if (address < part.address || address - part.address >= part.size) continue;
    uint64_t offset = part.offset + (address - part.address);
    if (raw == nullptr || part.offset > size || part.size > size - part.offset) break;
    return std::string_view(raw + offset, part.size - (address - part.address));
  }
  return {};
}

}  // namespace lull::inject
