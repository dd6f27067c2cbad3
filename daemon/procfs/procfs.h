// Reads small files and links below /proc. A process may vanish at any moment: what is
// not there, or not ours to see, is an errno and never an exception.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull {

class Procfs {
 public:
  // Another root is for tests: a folder that looks like /proc.
  explicit Procfs(std::string root = "/proc") : root_(std::move(root)) {}

  struct Answer {
    std::string text;
    int error = 0;  // an errno; 0 = `text` is what there is
    bool ok() const { return error == 0; }
  };

  // `name` is relative to the root ("self/status"), or to the process's folder.
  Answer Read(absl::string_view name, size_t limit = 64 << 10) const;
  Answer Read(pid_t pid, absl::string_view name, size_t limit = 64 << 10) const;
  Answer Link(absl::string_view name) const;
  Answer Link(pid_t pid, absl::string_view name) const;

  std::vector<pid_t> Pids() const;
  std::vector<pid_t> Threads(pid_t pid) const;
  // Where the links of a folder of the process lead ("fd"); those that cannot be read
  // are left out.
  std::vector<std::string> Links(pid_t pid, absl::string_view folder) const;

  std::string Path(absl::string_view name) const;
  std::string Path(pid_t pid, absl::string_view name) const;

 private:
  std::string root_;
};

}  // namespace lull
