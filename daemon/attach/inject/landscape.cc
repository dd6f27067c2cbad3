#include "daemon/attach/inject/landscape.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/base/word_list.h"

namespace lull::inject {
namespace {

// Functions of libc that hold locks which dlopen or malloc take, while they call
// or wait for something.
constexpr std::string_view kLockedFunctions =
    "malloc calloc realloc free cfree memalign aligned_alloc posix_memalign valloc "
    "pvalloc malloc_trim mallopt malloc_info malloc_stats mallinfo mallinfo2 "
    "reallocarray fork _Fork vfork daemon forkpty posix_spawn posix_spawnp popen "
    "system exit quick_exit on_exit fflush fclose fcloseall fopen fopen64 freopen "
    "freopen64 fdopen fopencookie pthread_create pthread_exit thrd_create thrd_exit "
    "pthread_getattr_np pthread_atfork setlocale newlocale freelocale dcgettext "
    "dcngettext bindtextdomain textdomain iconv_open iconv_close execve execv execvp "
    "atexit pthread_setattr_default_np";
constexpr std::array kLockedPrefixes = {
    "dl",      "_dl_",      "__libc_dl",  "__libc_fork", "__cxa_",       "__malloc",
    "__nptl_", "_IO_fopen", "_IO_fclose", "_IO_fflush",  "_IO_flush_all"};

bool HoldsLocks(std::string_view name) {
  for (std::string_view prefix : kLockedPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  constexpr std::string_view kOfLibc = "__libc_";
  if (name.starts_with(kOfLibc)) name.remove_prefix(kOfLibc.size());
  return IsAmong(name, kLockedFunctions);
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsLoader(std::string_view path) {
  const std::string_view name = BaseName(path);
  return name.starts_with("ld-linux") || name.starts_with("ld-2.") || name == "ld.so";
}

bool IsLibc(const Object& object) {
  return object.image != nullptr && object.image->soname() == "libc.so.6";
}

void AddCode(const Landscape& landscape, const Object& object,
             std::vector<Danger>* into) {
  for (const Mapping& mapping : landscape.maps) {
    if (mapping.executable && mapping.inode == object.inode &&
        mapping.device == object.device && mapping.path == object.path) {
      into->push_back({mapping.start, mapping.end, &object});
    }
  }
}

void AddLockedFunctions(const Object& libc, std::vector<Danger>* into) {
  libc.image->ForEachSymbol([&](std::string_view name, const Symbol& symbol) {
    if (!symbol.is_function || symbol.size == 0 || !HoldsLocks(name)) return;
    uint64_t start = libc.bias + symbol.address;
    into->push_back({start, start + symbol.size, &libc});
  });
}

// Sorted, and without overlaps so that halves can be searched.
void Tidy(std::vector<Danger>* dangers) {
  std::sort(dangers->begin(), dangers->end(),
            [](const Danger& a, const Danger& b) { return a.start < b.start; });
  std::vector<Danger> tidy;
  for (const Danger& danger : *dangers) {
    if (!tidy.empty() && danger.start <= tidy.back().end &&
        danger.object == tidy.back().object) {
      tidy.back().end = std::max(tidy.back().end, danger.end);
    } else {
      tidy.push_back(danger);
    }
  }
  *dangers = std::move(tidy);
}

// One object for each file with mapped code.
void CollectObjects(pid_t pid, ImageCache* images, Landscape* landscape) {
  for (const Mapping& mapping : landscape->maps) {
    if (!mapping.executable || mapping.inode == 0) continue;
    const auto& known = landscape->objects;
    bool again = std::any_of(known.begin(), known.end(), [&](const auto& object) {
      return object->inode == mapping.inode && object->device == mapping.device &&
             object->path == mapping.path;
    });
    if (again) continue;
    auto object = std::make_unique<Object>();
    object->path = mapping.path;
    object->device = mapping.device;
    object->inode = mapping.inode;
    object->image = images->Get(pid, mapping);
    if (object->image != nullptr) {
      auto address = object->image->AddressOf(mapping.offset);
      object->bias = mapping.start - address.value_or(mapping.offset);
    }
    landscape->objects.push_back(std::move(object));
  }
}

absl::Status ReasonForNoLibc(const Landscape& landscape) {
  for (const auto& object : landscape.objects) {
    absl::string_view name(object->path);
    if (absl::StrContains(name, "ld-musl") || absl::StrContains(name, "libc.musl")) {
      return absl::FailedPreconditionError(
          "the process uses musl as its C library; only glibc can be attached to");
    }
    if (IsLoader(object->path) || absl::StrContains(name, "libc.so.6")) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot read ", object->path,
          " of the process (replaced while it runs?): its functions are not known"));
    }
  }
  return absl::FailedPreconditionError(
      "the process is linked statically: it has no loader that could take a library "
      "in");
}

void FindDlopen(Landscape* landscape) {
  constexpr uint64_t kInternal = 0x80000000;  // __RTLD_DLOPEN, of __libc_dlopen_mode
  landscape->dlopen_flags = RTLD_NOW | RTLD_LOCAL;
  if (auto at = FunctionAddress(*landscape->libc, "dlopen")) {
    landscape->dlopen = *at;
    return;
  }
  for (const auto& object : landscape->objects) {
    if (object->image == nullptr || object->image->soname() != "libdl.so.2") continue;
    if (auto at = FunctionAddress(*object, "dlopen")) {
      landscape->dlopen = *at;
      return;
    }
  }
  if (auto at = FunctionAddress(*landscape->libc, "__libc_dlopen_mode")) {
    landscape->dlopen = *at;
    landscape->dlopen_flags |= kInternal;
  }
}

// In libc, or in the vDSO, which is in no file.
void FindTrampoline(pid_t pid, std::string_view code, Landscape* landscape) {
  for (const Mapping& mapping : landscape->maps) {
    if (!mapping.executable) continue;
    std::string kernels;
    std::string_view text;
    if (mapping.path == landscape->libc->path) {
      uint64_t own = mapping.start - landscape->libc->bias;
      text = landscape->libc->image->BytesAt(own);
    } else if (mapping.path == "[vdso]" && landscape->trampoline == 0) {
      kernels.resize(mapping.end - mapping.start);
      if (!ReadMemory(pid, mapping.start, kernels.data(), kernels.size())) continue;
      text = kernels;
    }
    size_t at = text.find(code);
    if (at != std::string_view::npos && at < mapping.end - mapping.start) {
      landscape->trampoline = mapping.start + at;
    }
  }
}

void FindErrno(pid_t pid, const Arch& arch, Landscape* landscape) {
  const Object& libc = *landscape->libc;
  auto function = libc.image->Exported("__errno_location");
  if (!function) return;
  uint64_t slot = arch.ErrnoOffsetSlot(libc.image->BytesAt(function->address),
                                       libc.bias + function->address);
  uint64_t offset = 0;
  if (slot != 0 && ReadMemory(pid, slot, &offset, sizeof(offset))) {
    landscape->errno_offset = offset;
  }
}

bool SameCode(const std::vector<Mapping>& a, const std::vector<Mapping>& b) {
  auto code = [](const Mapping& mapping) {
    return mapping.executable && mapping.inode != 0;
  };
  auto other = b.begin();
  for (const Mapping& mapping : a) {
    if (!code(mapping)) continue;
    other = std::find_if(other, b.end(), code);
    if (other == b.end() || other->start != mapping.start ||
        other->end != mapping.end || other->inode != mapping.inode ||
        other->path != mapping.path) {
      return false;
    }
    ++other;
  }
  return std::find_if(other, b.end(), code) == b.end();
}

}  // namespace

void ImageCache::Add(std::shared_ptr<const ElfImage> image) {
  images_[{image->device(), image->inode()}] = image;
}

std::shared_ptr<const ElfImage> ImageCache::Get(pid_t pid, const Mapping& mapping) {
  auto [at, is_new] = images_.try_emplace({mapping.device, mapping.inode});
  if (!is_new) return at->second;
  std::string path = PathThroughRoot(pid, mapping.path);
  struct stat facts;
  // The device is not compared: overlay and btrfs show another one in maps.
  if (stat(path.c_str(), &facts) != 0 || facts.st_ino != mapping.inode) {
    path = absl::StrCat("/proc/", pid, "/map_files/", absl::Hex(mapping.start), "-",
                        absl::Hex(mapping.end));
  }
  at->second = ElfImage::Open(path);
  return at->second;
}

absl::StatusOr<Landscape> Survey(pid_t pid, const Arch& arch, ImageCache* images) {
  Landscape landscape;
  landscape.maps = ReadMaps(pid);
  if (landscape.maps.empty()) {
    return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
  }
  if (auto program = ElfImage::Open(absl::StrCat("/proc/", pid, "/exe"));
      program == nullptr) {
    return absl::FailedPreconditionError(
        "the program is not a 64-bit one, or cannot be read");
  }
  landscape.stack_limit = StackLimitOf(pid);
  (void)absl::SimpleAtoi(StatusOf(pid, pid, "Tgid"), &landscape.main_thread);
  CollectObjects(pid, images, &landscape);
  for (const auto& object : landscape.objects) {
    if (IsLibc(*object)) landscape.libc = object.get();
    if (IsLoader(object->path) && object->image != nullptr) {
      landscape.loader = object.get();
    }
  }
  if (landscape.libc == nullptr || landscape.loader == nullptr) {
    return ReasonForNoLibc(landscape);
  }
  AddCode(landscape, *landscape.loader, &landscape.dangers);
  for (const auto& object : landscape.objects) {
    bool allocates = object.get() != landscape.libc && object->image != nullptr &&
                     object->image->Exported("malloc").has_value();
    if (allocates && object.get() != landscape.loader) {
      AddCode(landscape, *object, &landscape.dangers);
    }
  }
  landscape.no_start = landscape.dangers;
  AddCode(landscape, *landscape.libc, &landscape.no_start);
  AddLockedFunctions(*landscape.libc, &landscape.dangers);
  Tidy(&landscape.dangers);
  Tidy(&landscape.no_start);

  FindDlopen(&landscape);
  FindTrampoline(pid, arch.TrampolineCode(), &landscape);
  FindErrno(pid, arch, &landscape);
  if (landscape.dlopen == 0 || landscape.trampoline == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("no ", landscape.dlopen == 0 ? "dlopen" : "return from signals",
                     " found in ", landscape.libc->path, " of the process"));
  }
  if (auto debug = landscape.loader->image->Exported("_r_debug")) {
    landscape.debug = landscape.loader->bias + debug->address;
  }
  if (auto state = landscape.loader->image->Exported("_rtld_global")) {
    landscape.loader_state = landscape.loader->bias + state->address;
    landscape.loader_state_size = state->size;
  }
  return landscape;
}

absl::StatusOr<Landscape> Refresh(pid_t pid, const Arch& arch, ImageCache* images,
                                  Landscape known) {
  std::vector<Mapping> now = ReadMaps(pid);
  if (known.libc == nullptr || !SameCode(now, known.maps)) {
    return Survey(pid, arch, images);
  }
  known.maps = std::move(now);
  return known;
}

const Object* FindObject(const Landscape& landscape, const ElfImage& identity) {
  for (const auto& object : landscape.objects) {
    if (object->inode == identity.inode() && object->device == identity.device()) {
      return object.get();
    }
    if (object->image == nullptr) continue;
    const ElfImage& image = *object->image;
    if (!identity.build_id().empty() && image.build_id() == identity.build_id()) {
      return object.get();
    }
    if (!identity.soname().empty() && image.soname() == identity.soname()) {
      return object.get();
    }
  }
  return nullptr;
}

bool MayHold(const Landscape& landscape, const ElfImage& identity,
             std::string_view library) {
  if (FindObject(landscape, identity) != nullptr) return true;
  constexpr std::string_view kDeleted = " (deleted)";
  return std::any_of(
      landscape.objects.begin(), landscape.objects.end(), [&](const auto& object) {
        std::string_view path = object->path;
        if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
        return object->image == nullptr && BaseName(path) == BaseName(library);
      });
}

uint64_t BiasOfNewest(pid_t pid, const Landscape& landscape, const ElfImage& identity,
                      std::string_view library) {
  constexpr int kMost = 100'000;  // a list that is a circle ends here
  constexpr int kNewest = 8;      // the library and what it needs
  r_debug debug;
  if (landscape.debug == 0 ||
      !ReadMemory(pid, landscape.debug, &debug, sizeof(debug))) {
    return 0;
  }
  std::vector<link_map> list;
  auto at = reinterpret_cast<uint64_t>(debug.r_map);
  while (at != 0 && list.size() < kMost) {
    link_map object;
    if (!ReadMemory(pid, at, &object, sizeof(object))) return 0;
    list.push_back(object);
    at = reinterpret_cast<uint64_t>(object.l_next);
  }
  for (int i = 0; i < kNewest && !list.empty(); ++i, list.pop_back()) {
    char name[PATH_MAX] = {};
    auto name_at = reinterpret_cast<uint64_t>(list.back().l_name);
    // Up to the end of its page: nothing may be mapped behind.
    size_t size = std::min<size_t>(sizeof(name) - 1, 4096 - name_at % 4096);
    if (!ReadMemory(pid, name_at, name, size)) continue;
    struct stat facts;
    bool same = library == name ||
                (stat(PathThroughRoot(pid, name).c_str(), &facts) == 0 &&
                 facts.st_ino == identity.inode() && facts.st_dev == identity.device());
    if (same) return list.back().l_addr;
  }
  return 0;
}

std::optional<uint64_t> FunctionAddress(const Object& object, std::string_view name) {
  if (object.image == nullptr) return std::nullopt;
  auto symbol = object.image->Exported(name);
  if (!symbol || !symbol->is_function) return std::nullopt;
  return object.bias + symbol->address;
}

}  // namespace lull::inject
