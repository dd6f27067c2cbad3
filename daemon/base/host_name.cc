#include "daemon/base/host_name.h"

#include <unistd.h>

#include <array>

#include "daemon/base/text.h"

namespace lull {

std::string HostName() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? CleanText(name.data()) : "";
}

}  // namespace lull
