#include "daemon/relay/symbols/maps.h"

#include <sys/sysmacros.h>

#include "absl/strings/str_format.h"

namespace lull::relay {

Maps Maps::Parse(std::string_view text) {
  Maps maps;
  maps.mappings_ = ParseMaps(absl::string_view(text.data(), text.size()));
  std::erase_if(maps.mappings_,
                [](const Mapping& mapping) { return !mapping.executable; });
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

}  // namespace lull::relay
