#include <sys/statvfs.h>

#include "absl/strings/str_cat.h"
#include "cli/client/places.h"
#include "cli/doctor/check.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// A spool, and some hours of a busy job.
constexpr uint64_t kEnoughBytes = 1u << 30;
constexpr uint64_t kLeastBytes = 64u << 20;

Check RuntimePlace() {
  auto runtime = PrepareRuntimeDirectory();
  if (runtime.ok()) return {"runtime directory", Check::Status::kOk, *runtime};
  return {"runtime directory", Check::Status::kError,
          std::string(runtime.status().message()),
          "set LULL_RUNTIME_DIR to a directory of yours on a local disk"};
}

Check DataPlace() {
  absl::Status data = PrepareDataDirectory();
  if (data.ok()) return {"data directory", Check::Status::kOk, DataDirectory()};
  return {"data directory", Check::Status::kError, std::string(data.message()),
          "set XDG_DATA_HOME to a directory of yours"};
}

Check Space(const char* name, const std::string& path) {
  struct statvfs info = {};
  if (statvfs(path.c_str(), &info) != 0) {
    return {name, Check::Status::kWarning, absl::StrCat("cannot tell for ", path)};
  }
  uint64_t free = uint64_t{info.f_bavail} * info.f_frsize;
  Check check{name, Check::Status::kOk,
              absl::StrCat(FormatBytes(static_cast<int64_t>(free)), " free at ", path)};
  if (free < kEnoughBytes) {
    check.status = free < kLeastBytes ? Check::Status::kError : Check::Status::kWarning;
    check.advice =
        "free some space, or choose another place: events take about 8 bytes each";
  }
  return check;
}

}  // namespace

std::vector<Check> CheckPlaces() {
  return {RuntimePlace(), DataPlace(), Space("space", DataDirectory())};
}

}  // namespace lull
