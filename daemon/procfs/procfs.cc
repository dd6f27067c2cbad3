#include "daemon/procfs/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/unique_fd.h"

namespace lull {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  while (folder != nullptr) {
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace

std::string Procfs::Path(absl::string_view name) const {
  return absl::StrCat(root_, "/", name);
}

std::string Procfs::Path(pid_t pid, absl::string_view name) const {
  return absl::StrCat(root_, "/", pid, name.empty() ? "" : "/", name);
}

Procfs::Answer Procfs::Read(absl::string_view name, size_t limit) const {
  Answer answer;
  // Not to wait, should a hostile container have put a pipe where we look.
  UniqueFd file(open(Path(name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    answer.error = errno;
    return answer;
  }
  char buffer[16384];
  while (answer.text.size() < limit) {
    ssize_t got =
        read(file.get(), buffer, std::min(sizeof(buffer), limit - answer.text.size()));
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      answer.error = errno;  // ESRCH: it ended while we read
      break;
    }
    answer.text.append(buffer, static_cast<size_t>(got));
  }
  return answer;
}

Procfs::Answer Procfs::Read(pid_t pid, absl::string_view name, size_t limit) const {
  return Read(absl::StrCat(pid, "/", name), limit);
}

Procfs::Answer Procfs::Link(absl::string_view name) const {
  Answer answer;
  char target[PATH_MAX];
  ssize_t length = readlink(Path(name).c_str(), target, sizeof(target));
  if (length < 0) {
    answer.error = errno;
  } else {
    answer.text.assign(target, static_cast<size_t>(length));
  }
  return answer;
}

Procfs::Answer Procfs::Link(pid_t pid, absl::string_view name) const {
  return Link(absl::StrCat(pid, "/", name));
}

namespace {

std::vector<pid_t> NumbersIn(const std::string& folder) {
  std::vector<pid_t> numbers;
  for (const std::string& name : NamesIn(folder)) {
    pid_t number;
    if (absl::SimpleAtoi(name, &number) && number > 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

std::vector<pid_t> Procfs::Pids() const { return NumbersIn(root_); }

std::vector<pid_t> Procfs::Threads(pid_t pid) const {
  return NumbersIn(Path(pid, "task"));
}

std::vector<std::string> Procfs::Links(pid_t pid, absl::string_view folder) const {
  std::vector<std::string> links;
  for (const std::string& name : NamesIn(Path(pid, folder))) {
    Answer link = Link(pid, absl::StrCat(folder, "/", name));
    if (link.ok()) links.push_back(std::move(link.text));
  }
  return links;
}

}  // namespace lull
