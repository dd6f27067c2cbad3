#include "cli/commands/wrong_command_line.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/commands/manual.h"

namespace lull {
namespace {

// Letters to add, leave out, change or swap with their neighbour (optimal string
// alignment).
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> two_before(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    two_before.swap(before);
    before.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1,
                         before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

void Complain(absl::string_view line) { fwrite(line.data(), 1, line.size(), stderr); }

// What the chosen verb could not use. CLI11's own sentence does not name the verb.
bool ComplainsOfExtra(const CLI::App& app) {
  for (const CLI::App* verb : app.get_subcommands()) {
    for (const std::string& word : verb->remaining()) {
      std::string meant = NearestOption(*verb, word);
      PrintError(
          verb->get_name(),
          absl::StrCat(
              absl::StartsWith(word, "-") ? "unknown option " : "unexpected word ",
              word, meant,
              meant.empty() ? absl::StrCat("; see `lull ", verb->get_name(), " --help`")
                            : ""));
      return true;
    }
  }
  return false;
}

}  // namespace

std::string Nearest(absl::string_view word, const std::vector<std::string>& known) {
  // A name that begins like this is meant, however long it is.
  std::string best;
  size_t least = word.size() / 4 + 2;
  for (const std::string& name : known) {
    if (word.size() > 2 && absl::StartsWith(name, word)) return name;
    const size_t distance = Distance(word, name);
    // Of two as near, the one that begins as the word does: few mistype the first letter.
    const bool begins_so =
        distance == least && !word.empty() && absl::StartsWith(name, word.substr(0, 1)) &&
        !absl::StartsWith(best, word.substr(0, 1)) && !best.empty();
    if ((distance >= least && !begins_so) || distance >= name.size()) continue;
    least = distance;
    best = name;
  }
  return best;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

std::string NearestOption(const CLI::App& app, absl::string_view word) {
  if (!absl::StartsWith(word, "-")) return "";
  return DidYouMean(word.substr(0, word.find('=')), LongOptions(app));
}

bool ComplainsOfVerb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2) {
    Complain(app.help());
    return true;
  }
  std::string word = argv[1];
  if (absl::StartsWith(word, "-")) return false;
  std::vector<std::string> verbs;
  for (const CLI::App* verb :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == word) return false;
    if (!verb->get_group().empty()) verbs.push_back(verb->get_name());
  }
  std::string meant = DidYouMean(word, verbs);
  Complain(absl::StrCat("lull: '", word, "' is no verb",
                        meant.empty() ? "; `lull --help` lists them" : meant, "\n"));
  return true;
}

int ExitOf(const CLI::App& app, const CLI::ParseError& error) {
  bool extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (extra && ComplainsOfExtra(app)) return kExitUsage;
  return app.exit(error) == 0 ? 0 : kExitUsage;
}

}  // namespace lull
