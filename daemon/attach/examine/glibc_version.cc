#include "daemon/attach/examine/glibc_version.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/attach/examine/mapped_files.h"
#include "daemon/base/unique_fd.h"

namespace lull::attach {
namespace {

constexpr int kOldestMinor = 28;
constexpr off_t kMaxLibrary = 32 << 20;
constexpr absl::string_view kBanner = "GNU C Library";
constexpr absl::string_view kBeforeNumber = "release version ";

std::string NumberAtFront(absl::string_view text) {
  return std::string(
      text.substr(0, std::min(text.find_first_not_of("0123456789."), text.size())));
}

std::string VersionIn(absl::string_view library) {
  size_t banner = library.find(kBanner);
  if (banner == absl::string_view::npos) return "";
  absl::string_view line = library.substr(banner, 256);
  size_t number = line.find(kBeforeNumber);
  if (number == absl::string_view::npos) return "";
  std::string version = NumberAtFront(line.substr(number + kBeforeNumber.size()));
  while (!version.empty() && version.back() == '.') version.pop_back();
  return version;
}

}  // namespace

std::string ReadGlibcVersion(absl::string_view name, const std::string& path) {
  absl::string_view file = FileName(name);
  if (absl::ConsumePrefix(&file, "libc-") && absl::ConsumeSuffix(&file, ".so")) {
    return std::string(file);
  }
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size <= 0 || info.st_size > kMaxLibrary) {
    return "";
  }
  auto size = static_cast<size_t>(info.st_size);
  std::string text(size, '\0');  // not mapped: a file that shrinks would kill us
  ssize_t got = pread(fd.get(), text.data(), size, 0);
  return got <= 0 ? "" : VersionIn(absl::string_view(text).substr(0, got));
}

bool IsGlibcNewEnough(absl::string_view version) {
  int major = 0;
  int minor = 0;
  std::string text(version);
  if (sscanf(text.c_str(), "%d.%d", &major, &minor) != 2) return true;
  return major > 2 || (major == 2 && minor >= kOldestMinor);
}

}  // namespace lull::attach
