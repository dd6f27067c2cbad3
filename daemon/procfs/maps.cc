#include "daemon/procfs/maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"

namespace lull {
namespace {

bool ParseMapping(const std::string& line, Mapping* mapping) {
  char permissions[8] = {};
  unsigned major = 0;
  unsigned minor = 0;
  int path_at = -1;
  int fields = sscanf(line.c_str(),
                      "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
                      &mapping->start, &mapping->end, permissions, &mapping->offset,
                      &major, &minor, &mapping->inode, &path_at);
  if (fields != 7 || mapping->end <= mapping->start) return false;
  mapping->device = makedev(major, minor);
  mapping->readable = permissions[0] == 'r';
  mapping->writable = permissions[1] == 'w';
  mapping->executable = permissions[2] == 'x';
  if (path_at >= 0) mapping->path = line.substr(static_cast<size_t>(path_at));
  return true;
}

}  // namespace

std::vector<Mapping> ParseMaps(absl::string_view text) {
  std::vector<Mapping> maps;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    Mapping mapping;
    if (ParseMapping(std::string(line), &mapping)) maps.push_back(std::move(mapping));
  }
  std::sort(maps.begin(), maps.end(),
            [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
  return maps;
}

const Mapping* FindMapping(const std::vector<Mapping>& maps, uint64_t address) {
  auto after = std::upper_bound(
      maps.begin(), maps.end(), address,
      [](uint64_t value, const Mapping& mapping) { return value < mapping.start; });
  if (after == maps.begin()) return nullptr;
  const Mapping& candidate = *(after - 1);
  return address < candidate.end ? &candidate : nullptr;
}

}  // namespace lull
