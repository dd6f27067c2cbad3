#include "daemon/relay/maps.h"

#include <stdio.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cinttypes>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lull::relay {
namespace {

bool ParseLine(const std::string& line, Mapping* mapping) {
  char permissions[8] = {};
  unsigned device[2] = {};
  int path_at = -1;
  int fields = sscanf(line.c_str(),
                      "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n",
                      &mapping->start, &mapping->end, permissions, &mapping->offset,
                      &device[0], &device[1], &mapping->inode, &path_at);
  if (fields != 7 || mapping->end <= mapping->start || permissions[2] != 'x') {
    return false;
  }
  mapping->device = makedev(device[0], device[1]);
  if (path_at >= 0) mapping->path = line.substr(path_at);
  return true;
}

}  // namespace

Maps Maps::Parse(std::string_view text) {
  Maps maps;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    Mapping mapping;
    if (ParseLine(std::string(line), &mapping))
      maps.mappings_.push_back(std::move(mapping));
  }
  std::sort(maps.mappings_.begin(), maps.mappings_.end(),
            [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
  return maps;
}

std::string Maps::ToText() const {
  std::string text;
  for (const Mapping& m : mappings_) {
    absl::StrAppendFormat(&text, "%x-%x r-xp %x %02x:%02x %d %s\n", m.start, m.end,
                          m.offset, major(m.device), minor(m.device), m.inode, m.path);
  }
  return text;
}

const Mapping* Maps::Find(uint64_t address) const {
  auto after = std::upper_bound(
      mappings_.begin(), mappings_.end(), address,
      [](uint64_t value, const Mapping& mapping) { return value < mapping.start; });
  if (after == mappings_.begin()) return nullptr;
  const Mapping& candidate = *(after - 1);
  return address < candidate.end ? &candidate : nullptr;
}

}  // namespace lull::relay
