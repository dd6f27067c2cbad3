#include "cli/commands/output.h"

#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "cli/commands/terminal.h"
#include "cli/commands/verbs.h"
#include "cli/render/colour.h"

namespace lull {

void PrintError(absl::string_view verb, absl::string_view message) {
  std::string line = absl::StrCat("lull ", verb, ": ", message, "\n");
  fwrite(line.data(), 1, line.size(), stderr);
}

int PrintAnswer(absl::string_view verb, bool json, absl::string_view text) {
  std::string coloured;
  if (!json && UseColour(STDOUT_FILENO)) {
    coloured = Coloured(text);
    text = coloured;
  }
  if (ShowInPager(text)) return 0;
  size_t written = fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && fflush(stdout) == 0) return 0;
  PrintError(verb, absl::StrCat("cannot write the answer: ", strerror(errno)));
  return kExitFailed;
}

}  // namespace lull
