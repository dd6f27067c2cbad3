#include "cli/commands/configuration.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/commands/verbs.h"
#include "cli/commands/wrong_command_line.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/gpu_plan.h"

namespace lull {
namespace {

constexpr off_t kLargestFile = 1 << 16;

struct Key {
  const char* name;
  const char* variable;  // which wins over a file; "" = none
  // Says where data and tokens go: from the user's file alone, and only together, so
  // that no token is sent to a collector that it is not for.
  bool collector = false;
};

constexpr std::array<Key, 13> kKeys = {{{"collector", "LULL_COLLECTOR", true},
                                        {"token-file", "LULL_TOKEN_FILE", true},
                                        {"tls-ca", "LULL_TLS_CA", true},
                                        {"insecure-plain-tcp", "", true},
                                        {"overhead-budget", ""},
                                        {"gpu", ""},
                                        {"schedule", ""},
                                        {"step-range", ""},
                                        {"quiet", ""},
                                        {"top", ""},
                                        {"by", ""},
                                        {"color", "NO_COLOR"},
                                        {"no-pager", ""}}};

bool IsSet(const char* variable) {
  const char* value = variable[0] != '\0' ? getenv(variable) : nullptr;
  return value != nullptr && value[0] != '\0';
}

bool Given(const std::vector<std::string>& words, absl::string_view name) {
  std::string option = absl::StrCat("--", name);
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return word == option || absl::StartsWith(word, absl::StrCat(option, "="));
  });
}

std::string UsersFile() {
  const char* xdg = getenv("XDG_CONFIG_HOME");
  if (xdg != nullptr && xdg[0] == '/') return absl::StrCat(xdg, "/lull/lull.toml");
  const char* home = getenv("HOME");
  return home != nullptr && home[0] == '/'
             ? absl::StrCat(home, "/.config/lull/lull.toml")
             : "";
}

// By nobody but its user and root.
bool IsWrittenByUs(const struct stat& status) {
  return (status.st_uid == geteuid() || status.st_uid == 0) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The text of a file that can be trusted; nothing where there is none.
std::optional<std::string> Read(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return std::nullopt;
  std::string folder =
      path.find('/') == std::string::npos ? "." : path.substr(0, path.rfind('/'));
  struct stat status = {}, around = {};
  bool trusted = fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                 status.st_size <= kLargestFile && stat(folder.c_str(), &around) == 0 &&
                 IsWrittenByUs(status) && IsWrittenByUs(around);
  if (!trusted) {
    std::string line =
        absl::StrCat("lull: ", path,
                     " is passed over: it is no file of yours, or others "
                     "may write to it or its folder\n");
    fwrite(line.data(), 1, line.size(), stderr);
    return std::nullopt;
  }
  std::string text(static_cast<size_t>(status.st_size), '\0');
  ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

class File {
 public:
  File(std::string path, bool users, const std::vector<std::string>& words)
      : path_(std::move(path)), users_(users), words_(words) {}

  absl::Status ApplyTo(CLI::App& verb) {
    std::optional<std::string> text = path_.empty() ? std::nullopt : Read(path_);
    if (!text) return absl::OkStatus();
    std::istringstream stream(*text);
    std::vector<CLI::ConfigItem> items;
    try {
      items = CLI::ConfigTOML().from_config(stream);
    } catch (const CLI::Error& error) {
      return absl::InvalidArgumentError(absl::StrCat(path_, ": ", error.what()));
    }
    for (const CLI::ConfigItem& item : items) {
      if (item.name == "++" || item.name == "--") continue;  // ends of a section
      LULL_RETURN_IF_ERROR(Apply(item, verb));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Wrong(const CLI::ConfigItem& item, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": ", item.fullname(), ": ", what));
  }

  absl::Status Apply(const CLI::ConfigItem& item, CLI::App& verb) const {
    const Key* key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& known) {
      return item.name == known.name;
    });
    if (key == kKeys.end() || !item.parents.empty()) {
      std::vector<std::string> known;
      for (const Key& one : kKeys) known.push_back(one.name);
      std::string meant = Nearest(item.name, known);
      if (!item.parents.empty()) return Wrong(item, "there are no sections");
      return Wrong(item, meant.empty() ? "unknown key"
                                       : absl::StrCat("unknown key; did you mean '",
                                                      meant, "'?"));
    }
    if (key->collector && !users_) {
      return Wrong(item,
                   "where events and tokens go is not for a file beside the code to "
                   "say; put it into ~/.config/lull/lull.toml");
    }
    if (item.inputs.size() != 1) return Wrong(item, "one value is wanted");
    LULL_RETURN_IF_ERROR(CheckGpu(item));
    CLI::Option* option = verb.get_option_no_throw(absl::StrCat("--", key->name));
    if (option == nullptr || !Applies(*key, verb)) return absl::OkStatus();
    try {
      option->default_val(item.inputs.front());
    } catch (const CLI::Error& error) {
      return Wrong(item, error.what());
    }
    return absl::OkStatus();
  }

  // Whether nothing stronger speaks of it.
  bool Applies(const Key& key, const CLI::App& verb) const {
    if (IsSet(key.variable)) return false;
    if (key.collector && (Given(words_, "collector") || IsSet("LULL_COLLECTOR"))) {
      return false;
    }
    absl::string_view name = key.name;
    // An armed job is traced as it was started; a schedule is of a mode.
    if (name == "gpu" || name == "schedule") {
      if (verb.get_name() == "arm") return false;
      if (name == "schedule" && Given(words_, "gpu")) return false;
    }
    return true;
  }

  absl::Status CheckGpu(const CLI::ConfigItem& item) const {
    absl::Status status;
    if (item.name == "gpu") status = relay::ParseGpuMode(item.inputs[0]).status();
    if (item.name == "schedule") {
      status = relay::ParseGpuSchedule(item.inputs[0]).status();
    }
    return status.ok() ? status : Wrong(item, status.message());
  }

  std::string path_;
  bool users_;
  const std::vector<std::string>& words_;
};

}  // namespace

absl::Status ApplyConfiguration(CLI::App& app, const std::vector<std::string>& words) {
  std::vector<CLI::App*> chosen = app.get_subcommands([&](const CLI::App* verb) {
    return !words.empty() && verb->get_name() == words.back();
  });
  if (chosen.empty() || words.back() == "relay" ||
      chosen[0]->get_option_no_throw("--collector") == nullptr) {
    return absl::OkStatus();
  }
  LULL_RETURN_IF_ERROR(File(UsersFile(), /*users=*/true, words).ApplyTo(*chosen[0]));
  return File("lull.toml", /*users=*/false, words).ApplyTo(*chosen[0]);
}

}  // namespace lull
