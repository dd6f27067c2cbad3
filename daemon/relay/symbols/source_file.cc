#include "daemon/relay/symbols/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace lull::relay {
namespace {

bool IsOurRoot(int root) {
  struct stat theirs, ours;
  return fstat(root, &theirs) == 0 && stat("/", &ours) == 0 &&
         theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

// A descriptor that names the file and does not open it.
UniqueFd Locate(int root, const std::string& path) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  UniqueFd found(
      static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how))));
  // Before Linux 5.6, and where a container's filter does not know the call: links are
  // right where they lead from our own root.
  if (!found && (errno == ENOSYS || errno == EPERM) && IsOurRoot(root)) {
    found.reset(open(path.c_str(), O_PATH | O_CLOEXEC));
  }
  return found;
}

// The time of the last change of any kind: that of the last writing can be set.
uint64_t ChangedNs(const struct stat& info) {
  return static_cast<uint64_t>(info.st_ctim.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(info.st_ctim.tv_nsec);
}

}  // namespace

UniqueFd OpenSource(int root, const std::string& path) {
  if (path.empty() || path[0] != '/') return UniqueFd();
  UniqueFd found = Locate(root, path);
  struct stat info;
  if (!found || fstat(found.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return UniqueFd();
  }
  const std::string itself = absl::StrCat("/proc/self/fd/", found.get());
  return UniqueFd(open(itself.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

std::optional<std::string> ReadSource(int file, uint64_t not_after_ns) {
  struct stat info;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0 ||
      static_cast<size_t>(info.st_size) > kMaxSourceFile ||
      ChangedNs(info) > not_after_ns) {
    return std::nullopt;
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        pread(file, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  // It may have changed while it was read.
  if (fstat(file, &info) != 0 || ChangedNs(info) > not_after_ns) return std::nullopt;
  return text;
}

Excerpt ExcerptAround(std::string_view text, uint32_t line) {
  Excerpt excerpt;
  if (line == 0) return excerpt;
  const uint32_t first = line > kLinesAround ? line - kLinesAround : 1;
  bool reached = false;
  size_t at = 0, newline = text.find('\n');
  for (uint32_t number = 1; at < text.size() && number <= line + kLinesAround;
       ++number) {
    if (newline < at) newline = text.find('\n', at);
    std::string_view one = text.substr(at, newline - at);
    one = one.substr(0, one.find('\r'));
    if (number >= first) excerpt.lines.emplace_back(one.substr(0, kMaxSourceLine));
    reached = reached || number == line;
    at += one.size();
    at += text.substr(at, 2) == "\r\n" ? 2 : 1;
  }
  if (!reached) return {};
  excerpt.first_line = first;
  return excerpt;
}

}  // namespace lull::relay
