#include "daemon/attach/examine/mapped_files.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/procfs/maps.h"

namespace lull::attach {
namespace {

constexpr absl::string_view kSegment = "/memfd:lull";

// "libcudart.so", "libcudart.so.12", and "libcudart-d0da41ae.so.11.0" of old wheels.
bool IsLibrary(absl::string_view file, absl::string_view name) {
  if (!absl::ConsumePrefix(&file, name)) return false;
  return absl::StartsWith(file, ".so") ||
         (absl::StartsWith(file, "-") && absl::StrContains(file, ".so"));
}

// Digits at the front of `text`.
absl::string_view Number(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() && absl::ascii_isdigit(text[length])) ++length;
  return text.substr(0, length);
}

// "3.11" at the front of "3.11t/site-packages", with the "t" of no GIL.
std::string VersionAtFront(absl::string_view text) {
  absl::string_view major = Number(text);
  if (major.empty() || !absl::StartsWith(text.substr(major.size()), ".")) return "";
  absl::string_view rest = text.substr(major.size() + 1);
  absl::string_view minor = Number(rest);
  if (minor.empty()) return "";
  bool no_gil = absl::StartsWith(rest.substr(minor.size()), "t");
  return absl::StrCat(major, ".", minor, no_gil ? "t" : "");
}

// ".../lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", where the
// interpreter itself is part of a program of another name.
std::string VersionOfExtension(absl::string_view path) {
  constexpr absl::string_view kFolder = "/python";
  if (!absl::StrContains(path, "/lib-dynload/")) return "";
  for (size_t at = path.find(kFolder); at != absl::string_view::npos;
       at = path.find(kFolder, at + 1)) {
    std::string version = VersionAtFront(path.substr(at + kFolder.size()));
    if (!version.empty()) return version;
  }
  return "";
}

void Look(absl::string_view path, MappedFiles* found) {
  absl::string_view name = FileName(path);
  if (name == "libc.so.6" ||
      (absl::StartsWith(name, "libc-2.") && absl::EndsWith(name, ".so"))) {
    found->glibc = std::string(path);
  } else if (absl::StartsWith(name, "ld-musl-") ||
             absl::StartsWith(name, "libc.musl-") ||
             absl::StrContains(path, "linux-musl/libc.so")) {
    found->musl = true;
  } else if (IsLibrary(name, "libcudart")) {
    found->cuda_runtime = true;
  } else if (IsLibrary(name, "libcuda")) {
    found->cuda_driver = true;
  } else if (name == "liblull.so") {
    found->shim = std::string(path);
  }
  if (absl::StartsWith(name, "libpython")) {
    std::string version = PythonVersionOf(name);
    if (!version.empty()) found->python_version = version;
  } else if (found->python_version.empty()) {
    found->python_version = VersionOfExtension(path);
  }
}

}  // namespace

absl::string_view FileName(absl::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string PythonVersionOf(absl::string_view file_name) {
  absl::string_view name = file_name;
  absl::ConsumePrefix(&name, "lib");
  if (!absl::ConsumePrefix(&name, "python")) return "";
  return VersionAtFront(name);
}

bool IsPythonProgram(absl::string_view file_name) {
  absl::string_view name = file_name;
  if (!absl::ConsumePrefix(&name, "python")) return false;
  return name.find_first_not_of("0123456789.td") == absl::string_view::npos;
}

MappedFiles ReadMappedFiles(absl::string_view maps) {
  MappedFiles found;
  std::string last;
  for (const Mapping& mapping : ParseMaps(maps)) {
    absl::string_view path = absl::StripSuffix(mapping.path, kDeleted);
    if (path == kSegment && found.segment == 0) found.segment = mapping.start;
    // Code alone: tools that read libraries (debuggers, our relay) map them as data.
    if (!mapping.executable || path == last) continue;
    last = std::string(path);
    if (absl::StartsWith(last, "/")) Look(last, &found);
  }
  found.shim_records = found.segment != 0 && !found.shim.empty();
  return found;
}

}  // namespace lull::attach
