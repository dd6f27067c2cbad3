#include "cli/commands/numbers.h"

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

constexpr int64_t kLargestPid = 1 << 22;  // PID_MAX_LIMIT of the kernel

}  // namespace

CLI::Validator NumberFrom(double least, double most) {
  auto check = [least, most](std::string& text) -> std::string {
    double number = 0;
    if (CLI::detail::lexical_cast(text, number) && number >= least && number <= most) {
      return "";
    }
    return absl::StrCat("'", Shortened(text, 40), "' is no number from ", least, " to ",
                        most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator Pid() {
  auto check = [](std::string& text) -> std::string {
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && number >= 1 && number <= kLargestPid) {
      return "";
    }
    return absl::StrCat(
        "'", Shortened(text, 40),
        "' is no PID, which is a number from 1 on; `lull ps` shows those "
        "of the processes that could be attached to");
  };
  return CLI::Validator(check, "");
}

}  // namespace lull
