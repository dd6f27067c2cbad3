// A file with source text, and the lines around one of it. The file is whatever the
// target's user put there: opened as that user would, never waited for, and bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/unique_fd.h"

namespace lull::relay {

// Larger files are not read.
inline constexpr size_t kMaxSourceFile = 1 << 20;
// Lines before and behind the one that is asked for.
inline constexpr uint32_t kLinesAround = 2;
inline constexpr size_t kMaxSourceLine = 200;  // bytes; the rest is cut

// Opens `path`, absolute, below the folder `root`, which no link leads out of. An empty
// descriptor if it is no regular file or cannot be opened; a device or a pipe notices
// nothing of it.
UniqueFd OpenSource(int root, const std::string& path);

// What a file says, if it is a regular one of at most kMaxSourceFile bytes that has not
// changed after `not_after_ns` (CLOCK_REALTIME), also not while it was read: a later
// change is not what ran.
std::optional<std::string> ReadSource(int file, uint64_t not_after_ns);

struct Excerpt {
  uint32_t first_line = 0;
  std::vector<std::string> lines;
};
// The lines around `line`, from 1; none where the text does not have it. As Python
// counts them: "\n", "\r\n" and "\r" alone end one.
Excerpt ExcerptAround(std::string_view text, uint32_t line);

}  // namespace lull::relay
