// The terminal as `lull top` uses it, by ncurses: the only file that sees it. lull is
// linked statically; terminals that the system has no description of, as in a small
// image, are found among the common ones that are built in.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/top/view.h"

namespace lull {

// One at a time, as ncurses has global state. The terminal is as before once it is
// gone.
class TopTerminal {
 public:
  TopTerminal() = default;
  ~TopTerminal();
  TopTerminal(const TopTerminal&) = delete;
  TopTerminal& operator=(const TopTerminal&) = delete;

  // FAILED_PRECONDITION: stdin and stdout are no terminal, or one that cannot show
  // this.
  absl::Status Open(bool colour);

  size_t rows() const;
  size_t columns() const;
  void Draw(const std::vector<TopLine>& lines);

  // The next key, as Press() wants it; 0: none came in that time, or the terminal has
  // another size; kGone: there is no terminal any more.
  static constexpr int kGone = -1;
  int ReadKey(absl::Duration patience);

 private:
  void* screen_ = nullptr;  // SCREEN
  bool unicode_ = false;
  int reads_without_key_ = 0;
};

}  // namespace lull
