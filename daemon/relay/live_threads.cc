#include "daemon/relay/live_threads.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/unique_fd.h"

namespace lull::relay {
namespace {

// The last number of NSpid: the one in the innermost namespace.
std::optional<uint32_t> InnerNumber(const std::string& status_path) {
  UniqueFd file(open(status_path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer;
  ssize_t got = file ? read(file.get(), buffer.data(), buffer.size()) : -1;
  if (got <= 0) return std::nullopt;
  absl::string_view text(buffer.data(), static_cast<size_t>(got));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "NSpid:")) continue;
    size_t last = line.find_last_of("\t ");
    uint32_t number = 0;
    if (last != absl::string_view::npos &&
        absl::SimpleAtoi(line.substr(last + 1), &number)) {
      return number;
    }
  }
  return std::nullopt;
}

// Those of the threads that are listed.
std::optional<absl::flat_hash_set<uint32_t>> Listed(const std::string& folder,
                                                    bool own_names) {
  std::error_code error;
  absl::flat_hash_set<uint32_t> threads;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    std::string name = entry->path().filename();
    uint32_t number = 0;
    if (!absl::SimpleAtoi(name, &number)) continue;
    if (own_names) {
      // One that ended meanwhile is not missed.
      std::optional<uint32_t> inner =
          InnerNumber(absl::StrCat(folder, "/", name, "/status"));
      if (!inner) continue;
      number = *inner;
    }
    threads.insert(number);
  }
  if (error || threads.empty()) return std::nullopt;
  return threads;
}

bool IsThere(const std::string& folder, uint32_t thread) {
  return access(absl::StrCat(folder, "/", thread).c_str(), F_OK) == 0;
}

}  // namespace

std::optional<absl::flat_hash_set<uint32_t>> LiveThreads(
    pid_t pid, bool own_names, absl::flat_hash_set<uint32_t> asked) {
  constexpr int kListings = 3;
  std::string folder = absl::StrCat("/proc/", pid, "/task");
  absl::flat_hash_set<uint32_t> alive;
  for (int i = 0; i < (own_names ? kListings : 1) && !asked.empty(); ++i) {
    auto listed = Listed(folder, own_names);
    if (!listed) return std::nullopt;
    absl::erase_if(asked, [&](uint32_t thread) {
      return listed->contains(thread) && alive.insert(thread).second;
    });
  }
  if (own_names) return alive;
  for (uint32_t thread : asked) {
    if (IsThere(folder, thread)) alive.insert(thread);
  }
  return alive;
}

}  // namespace lull::relay
