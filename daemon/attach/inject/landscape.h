// What a target has mapped and where in it a thread must not be: a picture taken
// before any thread is stopped, so that a look at a stopped thread is short.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/attach/inject/arch.h"
#include "daemon/attach/inject/elf_image.h"
#include "daemon/attach/inject/proc.h"

namespace lull::inject {

// ELF files that were read already. A target's objects are read once per attach.
class ImageCache {
 public:
  // A file that is at hand already.
  void Add(std::shared_ptr<const ElfImage> image);
  // nullptr when the file that is mapped there cannot be read (any more).
  std::shared_ptr<const ElfImage> Get(pid_t pid, const Mapping& mapping);

 private:
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const ElfImage>> images_;
};

struct Object {
  std::string path;  // as the target sees it
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t bias = 0;                      // address in memory - the file's own
  std::shared_ptr<const ElfImage> image;  // nullptr: cannot be read
};

// Code that must not have called what a thread is doing at the moment.
struct Danger {
  uint64_t start = 0;
  uint64_t end = 0;
  const Object* object = nullptr;
};

struct Landscape {
  std::vector<Mapping> maps;
  std::vector<std::unique_ptr<Object>> objects;
  const Object* loader = nullptr;
  const Object* libc = nullptr;
  std::vector<Danger>
      dangers;  // loader, allocators, and some functions of libc; sorted
  std::vector<Danger> no_start;  // where a running thread must not be at all; sorted
  uint64_t trampoline = 0;       // libc's return from a signal handler
  uint64_t dlopen = 0;
  uint64_t dlopen_flags = 0;
  uint64_t errno_offset = 0;  // from the thread pointer; 0: not known
  uint64_t debug = 0;         // r_debug of the loader
  uint64_t loader_state = 0;  // _rtld_global: its locks are in there
  uint64_t loader_state_size = 0;
  uint64_t stack_limit = 0;
  pid_t main_thread = 0;  // the process's own number
};

// FAILED_PRECONDITION for a process that has no glibc to speak to.
absl::StatusOr<Landscape> Survey(pid_t pid, const Arch& arch, ImageCache* images);

// `known`, with its maps brought up to date; a survey again only if there is other code
// than before.
absl::StatusOr<Landscape> Refresh(pid_t pid, const Arch& arch, ImageCache* images,
                                  Landscape known);

// The object that is the same file as `identity`, or nullptr.
const Object* FindObject(const Landscape& landscape, const ElfImage& identity);

// Whether there is such an object, or one of that name that cannot be read: the file
// of a library may have been replaced.
bool MayHold(const Landscape& landscape, const ElfImage& identity,
             std::string_view library);

// The same, right after a dlopen of `library`: from the end of the loader's own list,
// which takes a tenth of the time that maps would. 0 when it is not there.
uint64_t BiasOfNewest(pid_t pid, const Landscape& landscape, const ElfImage& identity,
                      std::string_view library);

// Where an exported function of a mapped object is.
std::optional<uint64_t> FunctionAddress(const Object& object, std::string_view name);

}  // namespace lull::inject
