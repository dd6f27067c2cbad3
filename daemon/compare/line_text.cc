#include "daemon/compare/line_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/crc32c.h"

namespace lull::compare {
namespace {

bool IsOfWord(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalnum(byte) || c == '_' || byte >= 0x80;
}

// "x = 'a#b'  # why" -> "x = 'a#b'  "
absl::string_view WithoutComment(absl::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

std::vector<absl::string_view> WordsOf(const std::string& fingerprint) {
  std::vector<absl::string_view> words = absl::StrSplit(fingerprint, ' ');
  std::erase_if(words, [](absl::string_view part) { return part.size() == 1; });
  std::sort(words.begin(), words.end());
  return words;
}

bool AreAlike(const std::string& a, const std::string& b) {
  const auto of_a = WordsOf(a), of_b = WordsOf(b);
  std::vector<absl::string_view> common;
  std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                        std::back_inserter(common));
  return 4 * common.size() > of_a.size() + of_b.size();
}

bool IsSame(const std::string& a, const std::string& b) { return !a.empty() && a == b; }

}  // namespace

std::string FingerprintOf(absl::string_view line, bool python) {
  if (python) line = WithoutComment(line);
  std::vector<std::string> parts;
  bool any_word = false;
  for (size_t i = 0; i < line.size();) {
    size_t end = i;
    while (end < line.size() && IsOfWord(line[end])) ++end;
    if (end > i) {
      any_word = true;
      parts.push_back(
          absl::StrCat(absl::Hex(Crc32c({line.data() + i, end - i}), absl::kZeroPad8)));
      i = end;
      continue;
    }
    if (absl::ascii_isgraph(static_cast<unsigned char>(line[i]))) {
      parts.emplace_back(1, line[i]);
    }
    ++i;
  }
  return any_word ? absl::StrJoin(parts, " ") : "";
}

LineText TextOf(const v1::SourceDef& source) {
  LineText text;
  const bool python = absl::EndsWith(source.file(), ".py");
  uint32_t number = source.first_line();
  for (const std::string& line : source.lines()) {
    std::string fingerprint = FingerprintOf(line, python);
    if (number == source.line()) {
      text.own = std::move(fingerprint);
    } else if (WordsOf(fingerprint).size() >= 2) {
      if (number < source.line()) {
        text.before = std::move(fingerprint);
      } else if (text.after.empty()) {
        text.after = std::move(fingerprint);
      }
    }
    ++number;
  }
  return text;
}

bool MayBeOneLine(const LineText& a, const LineText& b) {
  if (!a.known() || !b.known() || a.own == b.own) return true;
  return (IsSame(a.before, b.before) || IsSame(a.after, b.after)) &&
         AreAlike(a.own, b.own);
}

}  // namespace lull::compare
