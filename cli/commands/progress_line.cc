#include "cli/commands/progress_line.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/base/clock.h"

namespace lull {
namespace {

// What takes no longer needs no word about it.
constexpr absl::Duration kAfter = absl::Milliseconds(500);
constexpr absl::Duration kEvery = absl::Milliseconds(200);

void Say(const std::string& text) {
  ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(written);  // a line that nobody misses
}

}  // namespace

ProgressLine::ProgressLine(std::string verb, bool quiet)
    : verb_(std::move(verb)),
      on_(!quiet && isatty(STDERR_FILENO) == 1),
      begun_(SteadyNow()) {}

void ProgressLine::Show(const std::string& what, double share) {
  if (!on_) return;
  const absl::Time now = SteadyNow();
  if (now - begun_ < kAfter || now - shown_ < kEvery) return;
  shown_ = now;
  Say(absl::StrFormat("\r\x1b[Klull %s: %s %.0f %%", verb_, what, 100 * share));
  dirty_ = true;
}

void ProgressLine::Clear() {
  if (dirty_) Say("\r\x1b[K");
  dirty_ = false;
}

}  // namespace lull
