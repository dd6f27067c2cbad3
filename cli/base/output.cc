#include "cli/base/output.h"

#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/base/exit_code.h"
#include "cli/base/terminal.h"
#include "cli/render/colour.h"

namespace lull {
namespace {

int write_error = 0;  // of stdout
bool told = false;    // that there was one

}  // namespace

void PrintError(absl::string_view verb, absl::string_view message) {
  std::string line = absl::StrCat("lull ", verb, ": ", WithoutOrders(message), "\n");
  fwrite(line.data(), 1, line.size(), stderr);
}

int Fail(absl::string_view verb, absl::string_view message, int exit_code) {
  PrintError(verb, message);
  return exit_code;
}

int Fail(absl::string_view verb, const absl::Status& status) {
  return Fail(verb, status.message(),
              absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed);
}

void Print(absl::string_view text) {
  if (fwrite(text.data(), 1, text.size(), stdout) != text.size()) write_error = errno;
}

void PrintAnswer(bool json, absl::string_view text) {
  std::string coloured;
  if (!json && UseColour(STDOUT_FILENO)) {
    coloured = Coloured(text);
    text = coloured;
  }
  if (!ShowInPager(text)) Print(text);
}

bool FlushOutput(absl::string_view verb) {
  if (fflush(stdout) != 0) write_error = errno;
  if (write_error == 0 && ferror(stdout) == 0) return true;
  if (std::exchange(told, true)) return false;
  PrintError(verb, absl::StrCat("cannot write the answer: ",
                                strerror(write_error != 0 ? write_error : EIO)));
  return false;
}

}  // namespace lull
