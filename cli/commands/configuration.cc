#include "cli/commands/configuration.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/base/environment.h"
#include "cli/base/output.h"
#include "cli/commands/wrong_command_line.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/control/gpu_plan.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

constexpr off_t kLargestFile = 1 << 16;
constexpr char kNoSource[] = "no-source";

// What is special about some keys.
struct Key {
  const char* name = "";
  const char* variable = "";  // which wins over a file
  // Says where data and tokens go: from the user's file alone, and only together, so
  // that no token is sent to a collector that it is not for.
  bool collector = false;
};

constexpr Key kSpecial[] = {{"collector", "LULL_COLLECTOR", true},
                            {"token-file", "LULL_TOKEN_FILE", true},
                            {"tls-ca", "LULL_TLS_CA", true},
                            {"insecure-plain-tcp", "", true},
                            {"color", "NO_COLOR"}};

Key KeyOf(const std::string& name) {
  for (const Key& key : kSpecial) {
    if (name == key.name) return key;
  }
  return {};
}

// Of all verbs: one file is for all of them.
std::set<std::string> KnownKeys(const CLI::App& app) {
  std::set<std::string> known;
  for (const CLI::App* verb :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_configurable()) known.insert(option->get_lnames().front());
    }
  }
  return known;
}

bool Given(const CLI::App& verb, std::initializer_list<const char*> options) {
  return std::any_of(options.begin(), options.end(), [&](const char* name) {
    const CLI::Option* option = verb.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
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

void SayPassedOver(const std::string& path, absl::string_view why) {
  std::string line = absl::StrCat("lull: ", path, " is passed over: ", why, "\n");
  fwrite(line.data(), 1, line.size(), stderr);
}

// Why a file is not to be trusted, or cannot be read; nullptr where it can.
const char* AgainstFile(int fd, const std::string& path) {
  std::string folder =
      path.find('/') == std::string::npos ? "." : path.substr(0, path.rfind('/'));
  struct stat status = {}, around = {};
  if (fstat(fd, &status) != 0 || stat(folder.c_str(), &around) != 0) {
    return strerror(errno);
  }
  if (!S_ISREG(status.st_mode)) return "it is no file";
  if (status.st_size > kLargestFile) return "it is larger than 64 KiB";
  if (!IsWrittenByUs(status) || !IsWrittenByUs(around)) {
    return "it is not yours, or others may write to it or its folder";
  }
  return nullptr;
}

// The text of a file that can be trusted; nothing where there is none. `passed_over` is
// set if there is one that cannot.
std::optional<std::string> Read(const std::string& path, bool* passed_over) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    const int error = errno;
    struct stat status = {};  // a folder that may not be looked into holds none for us
    if (lstat(path.c_str(), &status) != 0) return std::nullopt;
    SayPassedOver(path, strerror(error));
    *passed_over = true;
    return std::nullopt;
  }
  if (const char* why = AgainstFile(file.get(), path)) {
    SayPassedOver(path, why);
    *passed_over = true;
    return std::nullopt;
  }
  std::string text(kLargestFile, '\0');
  ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// [check] and what follows are the rules of `lull check`, which reads them itself
// (check_rules.h). In TOML no key without a section comes after a section.
void CutRules(std::string* text) {
  size_t begin = 0;
  while (begin < text->size()) {
    absl::string_view line = absl::string_view(*text).substr(begin);
    line = line.substr(0, line.find('\n'));
    const size_t next = begin + line.size() + 1;
    line = absl::StripLeadingAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "[")) {
      absl::ConsumePrefix(&line, "[");
      line = absl::StripLeadingAsciiWhitespace(line);
      if (absl::ConsumePrefix(&line, "check") && !line.empty() &&
          absl::string_view("].").find(line[0]) != absl::string_view::npos) {
        text->resize(begin);
        return;
      }
    }
    begin = next;
  }
}

// What the files say, the strongest first, as defaults of one verb's options.
class Defaults {
 public:
  explicit Defaults(CLI::App* verb)
      : verb_(*verb),
        known_(KnownKeys(*verb->get_parent())),
        source_alone_(verb->get_name() == "relay") {
    // An armed job is traced as it was started; a schedule is of a mode.
    if (verb_.get_name() == "arm" || Given(verb_, {"--gpu", "--schedule"})) {
      decided_ = {"gpu", "schedule"};
    }
  }

  // What is wrong, one error for each key; all others have been applied.
  std::vector<absl::Status> Take(const std::string& path, bool users) {
    std::optional<std::string> text =
        path.empty() ? std::nullopt : Read(path, &left_out_);
    if (!text) return {};
    if (!users) CutRules(&*text);
    std::istringstream stream(*text);
    std::vector<CLI::ConfigItem> items;
    try {
      items = CLI::ConfigTOML().from_config(stream);
    } catch (const CLI::Error& error) {
      left_out_ = true;
      return {Wrong(path, error.what())};
    }
    std::vector<absl::Status> wrong;
    std::set<std::string> said;
    for (const CLI::ConfigItem& item : items) {
      if (item.name == "++" || item.name == "--") continue;  // ends of a section
      if (source_alone_ && item.name != kNoSource) continue;
      absl::Status applied = Apply(item, items, users);
      if (!applied.ok()) {
        wrong.push_back(
            Wrong(absl::StrCat(path, ": ", item.fullname()), applied.message()));
      } else {
        said.insert(item.name);
      }
    }
    // They go together: the place that says one of them decides on both.
    if (said.count("gpu") + said.count("schedule") > 0)
      said.insert({"gpu", "schedule"});
    decided_.merge(said);
    left_out_ = left_out_ || !wrong.empty();
    return wrong;
  }

  // Code is confidential: what was left out of the files may have forbidden source
  // text.
  void KeepNoSourceIfUnsure() {
    CLI::Option* option = verb_.get_option_no_throw(absl::StrCat("--", kNoSource));
    if (!left_out_ || option == nullptr || option->count() > 0) return;
    option->run_callback_for_default()->default_val("true");
  }

 private:
  // The file is anybody's text, and the message goes to a terminal.
  static absl::Status Wrong(absl::string_view where, absl::string_view what) {
    return absl::InvalidArgumentError(Printable(absl::StrCat(where, ": ", what)));
  }

  absl::Status Apply(const CLI::ConfigItem& item,
                     const std::vector<CLI::ConfigItem>& all, bool users) {
    if (!item.parents.empty()) {
      return absl::InvalidArgumentError("there are no sections");
    }
    if (known_.count(item.name) == 0) return Unknown(item.name);
    if (KeyOf(item.name).collector && !users) {
      return absl::InvalidArgumentError(
          "where events and tokens go is not for a file beside the code to say; put it "
          "into ~/.config/lull/lull.toml");
    }
    if (item.inputs.size() != 1) {
      return absl::InvalidArgumentError("one value is wanted");
    }
    LULL_RETURN_IF_ERROR(CheckGpu(item, all));
    CLI::Option* option = verb_.get_option_no_throw(absl::StrCat("--", item.name));
    if (option == nullptr || !Applies(item.name, *option)) return absl::OkStatus();
    try {
      // Without it the option would show the value in --help alone, and not use it.
      option->run_callback_for_default()->default_val(item.inputs.front());
    } catch (const CLI::Error& error) {
      return absl::InvalidArgumentError(error.what());
    }
    return absl::OkStatus();
  }

  absl::Status Unknown(const std::string& name) const {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown key", DidYouMean(name, {known_.begin(), known_.end()})));
  }

  // Whether nothing stronger speaks of it.
  bool Applies(const std::string& name, const CLI::Option& option) const {
    const Key key = KeyOf(name);
    if (option.count() > 0 || decided_.count(name) > 0 ||
        !Variable(key.variable).empty()) {
      return false;
    }
    return !key.collector ||
           (!Given(verb_, {"--collector"}) && Variable("LULL_COLLECTOR").empty());
  }

  static absl::Status CheckGpu(const CLI::ConfigItem& item,
                               const std::vector<CLI::ConfigItem>& all) {
    if (item.name == "gpu") return relay::ParseGpuMode(item.inputs[0]).status();
    if (item.name != "schedule") return absl::OkStatus();
    for (const CLI::ConfigItem& other : all) {
      if (other.name == "gpu" && other.inputs != std::vector<std::string>{"window"}) {
        return absl::InvalidArgumentError("it is of gpu = \"window\" alone");
      }
    }
    return relay::ParseGpuSchedule(item.inputs[0]).status();
  }

  CLI::App& verb_;
  const std::set<std::string> known_;
  const bool source_alone_;        // of a relay, which jobs start
  bool left_out_ = false;          // a file, or a key of one
  std::set<std::string> decided_;  // by what is stronger
};

}  // namespace

absl::Status ApplyConfiguration(CLI::App& app) {
  for (CLI::App* verb : app.get_subcommands()) {
    if (verb->get_option_no_throw("--collector") == nullptr) continue;
    Defaults defaults(verb);
    std::vector<absl::Status> wrong = defaults.Take("lull.toml", /*users=*/false);
    for (absl::Status& one : defaults.Take(UsersFile(), /*users=*/true)) {
      wrong.push_back(std::move(one));
    }
    defaults.KeepNoSourceIfUnsure();
    const std::string name = verb->get_name();
    if (name != "run" && name != "relay") {
      if (!wrong.empty()) return wrong.front();
      continue;
    }
    // A job does not fail for a file about its measurement.
    for (const absl::Status& one : wrong) {
      PrintError(name,
                 absl::StrCat(one.message(),
                              " (left out; the job is started, and no source text "
                              "of it is kept)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace lull
