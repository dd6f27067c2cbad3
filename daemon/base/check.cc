#include "daemon/base/check.h"

#include <stdlib.h>

#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"

namespace lull {

void EndByCheck(const char* file, int line, const char* condition, const char* what) {
  LogError(absl::StrCat("a bug of lull's: ", what, " (", file, ":", line, ": ",
                        condition, "); ending, rather than telling wrong numbers"));
  abort();
}

}  // namespace lull
