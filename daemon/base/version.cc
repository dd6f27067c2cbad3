#include "daemon/base/version.h"

#include <lull_commit.h>

namespace lull {

std::string VersionText(const std::string& program) {
  return program + " " LULL_VERSION "\ncommit " LULL_COMMIT "\nbuilt by " LULL_BUILT;
}

}  // namespace lull
