#include "cli/render/command_name.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// The words of a shell's command, with their quotes.
std::vector<absl::string_view> Words(absl::string_view command) {
  std::vector<absl::string_view> words;
  size_t at = 0;
  while (at < command.size()) {
    size_t end = at;
    for (char quote = 0; end < command.size(); ++end) {
      char c = command[end];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '\'') {
        quote = c;
      } else if (c == '\\') {
        ++end;
      } else if (c == ' ') {
        break;
      }
    }
    end = std::min(end, command.size());
    if (end > at) words.push_back(command.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// A word may end in a quote that the path has in it: '/a b/train.py'.
std::string BaseName(absl::string_view word) {
  size_t slash = word.rfind('/');
  if (slash == absl::string_view::npos || slash + 1 == word.size()) {
    return std::string(word);
  }
  absl::string_view base = word.substr(slash + 1);
  if (!absl::StartsWith(word, "'")) return std::string(base);
  if (!absl::StrContains(base, ' ')) return std::string(absl::StripSuffix(base, "'"));
  return absl::StrCat("'", base);
}

bool IsAbsolute(absl::string_view word) {
  return absl::StartsWith(absl::StripPrefix(word, "'"), "/");
}

bool IsPython(absl::string_view program) {
  return absl::StartsWith(program, "python") || absl::StartsWith(program, "pypy");
}

// How many words of options stand between the interpreter and its script, module or
// code; 0 when nothing follows them.
size_t OptionsBeforeScript(const std::vector<absl::string_view>& words) {
  size_t at = 1;
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-') {
    absl::string_view word = words[at];
    if (absl::StartsWith(word, "--")) {
      at += word == "--check-hash-based-pycs" ? 2 : 1;
      continue;
    }
    // Letters in one word; one that takes a value ends it: -Wignore, -W ignore, -uBm x.
    size_t letter = word.find_first_of("mcWX");
    if (letter == absl::string_view::npos) {
      ++at;
    } else if (word[letter] == 'm' || word[letter] == 'c') {
      break;  // what it runs
    } else {
      at += letter + 1 == word.size() ? 2 : 1;
    }
  }
  return at < words.size() ? at - 1 : 0;
}

}  // namespace

std::string ShortCommand(absl::string_view command, size_t width) {
  std::vector<absl::string_view> words = Words(command);
  if (words.empty()) return "";
  std::string program = BaseName(words.front());
  const bool python = IsPython(program);
  words.erase(words.begin(),
              words.begin() + 1 +
                  static_cast<ptrdiff_t>(python ? OptionsBeforeScript(words) : 0));
  std::string text = absl::StrJoin(words, " ");
  if (python && !words.empty() && !absl::StartsWith(words.front(), "-") &&
      (IsAbsolute(words.front()) || program.size() + 1 + text.size() > width)) {
    std::string script = BaseName(words.front());
    text = absl::StrCat(script, absl::string_view(text).substr(words.front().size()));
  }
  return Shortened(text.empty() ? program : absl::StrCat(program, " ", text), width);
}

}  // namespace lull
