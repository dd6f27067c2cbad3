// One ELF file, as far as the injector must know it: identity, symbols, code bytes.
// Hostile files are expected: everything is read through libelf's checks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "daemon/base/unique_fd.h"

struct Elf;

namespace lull::inject {

struct Symbol {
  uint64_t address = 0;  // the file's own
  uint64_t size = 0;
  bool is_function = false;
};

class ElfImage {
 public:
  // nullptr when it cannot be opened or is no 64-bit ELF file.
  static std::shared_ptr<const ElfImage> Open(const std::string& path);
  ~ElfImage();
  ElfImage(const ElfImage&) = delete;
  ElfImage& operator=(const ElfImage&) = delete;

  const std::string& soname() const { return soname_; }
  const std::string& build_id() const { return build_id_; }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }
  const std::string& path() const { return path_; }

  // A symbol that is defined and exported, whatever its version.
  std::optional<Symbol> Exported(std::string_view name) const;
  // Every defined symbol of the dynamic table, and of the full one where there is one.
  void ForEachSymbol(
      absl::FunctionRef<void(std::string_view name, const Symbol&)> visit) const;

  // The file's own address of the code that is mapped from `offset`; nullopt outside of
  // all such parts.
  std::optional<uint64_t> AddressOf(uint64_t offset) const;
  // The bytes of the file at an address, up to the end of its loaded part.
  std::string_view BytesAt(uint64_t address) const;

 private:
  struct Part {
    uint64_t offset;
    uint64_t size;
    uint64_t address;
    bool executable;
  };

  ElfImage() = default;
  bool Read();
  void ReadDynamic();

  UniqueFd fd_;
  Elf* elf_ = nullptr;
  std::string path_;
  std::string soname_;
  std::string build_id_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  std::vector<Part> parts_;
};

}  // namespace lull::inject
