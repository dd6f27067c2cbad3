#include "cli/commands/check_rules.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/commands/wrong_command_line.h"
#include "daemon/base/status.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

constexpr size_t kLargestRules = 1 << 16;

absl::Status WrongRule(const std::string& where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(Printable(where), ": ", what));
}

// "lull.toml:4"
std::string WhereIs(const std::string& path, const toml::node& node) {
  return absl::StrCat(path, ":", node.source().begin.line);
}

// One of the keys of an allowance. A sentence if it is not what it should be.
std::string TakeKey(absl::string_view key, const toml::node& value,
                    check::Allowance* allowance) {
  if (key == "line") {
    const auto line = value.value_exact<int64_t>();
    if (!line || *line < 1 || *line > INT32_MAX) return "line is a number, from 1 on";
    allowance->line = static_cast<int>(*line);
    return "";
  }
  std::string* field = key == "file"       ? &allowance->file
                       : key == "function" ? &allowance->function
                       : key == "rule"     ? &allowance->rule
                       : key == "reason"   ? &allowance->reason
                       : key == "until"    ? &allowance->until
                                           : nullptr;
  if (field == nullptr) {
    return absl::StrCat(
        "unknown key ", Shortened(key, 100),
        DidYouMean(key, {"file", "line", "function", "rule", "reason", "until"}));
  }
  if (const auto day = value.value_exact<toml::date>(); day && key == "until") {
    std::ostringstream written;
    written << *day;
    *field = written.str();
    return "";
  }
  const auto text = value.value_exact<std::string>();
  if (!text) return absl::StrCat(key, " is a text in quotation marks");
  *field = *text;
  if (key == "file") check::WithoutDot(field);
  return "";
}

absl::Status AddAllowed(const std::string& path, const toml::node& node,
                        CheckRules* rules) {
  const toml::array* list = node.as_array();
  if (list == nullptr) {
    return WrongRule(WhereIs(path, node), "allow is a list: [[check.allow]]");
  }
  for (const toml::node& entry : *list) {
    const toml::table* table = entry.as_table();
    if (table == nullptr) {
      return WrongRule(WhereIs(path, entry), "allow is a list of tables");
    }
    check::Allowance allowance;
    for (const auto& [key, value] : *table) {
      std::string wrong = TakeKey(std::string(key.str()), value, &allowance);
      if (!wrong.empty()) return WrongRule(WhereIs(path, value), wrong);
    }
    if (std::string flaw = check::Flaw(allowance); !flaw.empty()) {
      return WrongRule(WhereIs(path, entry), flaw);
    }
    rules->allowances.push_back(std::move(allowance));
  }
  return absl::OkStatus();
}

absl::Status AddFailIf(const std::string& path, const toml::node& node,
                       CheckRules* rules) {
  const toml::array* list = node.as_array();
  if (list == nullptr) {
    return WrongRule(WhereIs(path, node), "fail-if is a list of rules: [\"...\"]");
  }
  for (const toml::node& entry : *list) {
    const auto text = entry.value_exact<std::string>();
    if (!text) return WrongRule(WhereIs(path, entry), "a rule is a text");
    LULL_RETURN_IF_ERROR(rules->AddRule(WhereIs(path, entry), *text));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadRules(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestRules + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) return WrongRule(path, "it cannot be read");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kLargestRules) return WrongRule(path, "it is larger than 64 KiB");
  return text;
}

}  // namespace

absl::Status CheckRules::AddRule(const std::string& where, const std::string& text) {
  auto parsed = check::ParseRule(text);
  if (auto* rule = std::get_if<check::Rule>(&parsed)) {
    rules.push_back(std::move(*rule));
    return absl::OkStatus();
  }
  const auto& error = std::get<check::RuleError>(parsed);
  std::string what = error.what;
  if (!error.metric.empty()) {
    std::vector<std::string> names;
    for (const check::Metric& metric : check::Metrics()) names.push_back(metric.name);
    const std::string meant = DidYouMean(error.metric, names);
    what += meant.empty() ? "; `lull check --metrics` lists them" : meant;
  }
  const std::string under(std::max<size_t>(error.length, 1), '^');
  return WrongRule(where, absl::StrCat(what, "\n  ", Printable(text), "\n  ",
                                       std::string(error.at, ' '), under));
}

absl::Status CheckRules::AddAllowance(const std::string& where,
                                      const std::string& text) {
  auto parsed = check::ParseAllowance(text);
  if (auto* flaw = std::get_if<std::string>(&parsed)) {
    return WrongRule(where, absl::StrCat(*flaw, "\n  ", Printable(text)));
  }
  allowances.push_back(std::move(std::get<check::Allowance>(parsed)));
  return absl::OkStatus();
}

absl::Status CheckRules::AddFile(const std::string& path, bool named) {
  // Another that is found there could make the gate wait for ever. One that is named
  // may be a pipe.
  std::error_code error;
  if (!named && !std::filesystem::is_regular_file(path, error)) {
    return WrongRule(path, "it cannot be read: it is no file");
  }
  LULL_ASSIGN_OR_RETURN(std::string text, ReadRules(path));
  toml::table file;
  try {
    file = toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    return WrongRule(absl::StrCat(path, ":", error.source().begin.line),
                     Printable(std::string(error.description())));
  }
  const toml::node* check = file.get("check");
  if (check == nullptr) {
    return named ? WrongRule(path, "there is no [check] in it") : absl::OkStatus();
  }
  if (!check->is_table()) {
    return WrongRule(WhereIs(path, *check), "check is a section: [check]");
  }
  for (const auto& [name, value] : *check->as_table()) {
    const std::string key(name.str());
    if (key == "fail-if") {
      LULL_RETURN_IF_ERROR(AddFailIf(path, value, this));
    } else if (key == "allow") {
      LULL_RETURN_IF_ERROR(AddAllowed(path, value, this));
    } else if (key == "allow-failed-job") {
      const auto allowed = value.value_exact<bool>();
      if (!allowed) {
        return WrongRule(WhereIs(path, value), "allow-failed-job is true or false");
      }
      allow_failed_job = allow_failed_job || *allowed;
    } else {
      return WrongRule(
          WhereIs(path, value),
          absl::StrCat("unknown key check.", Shortened(key, 100),
                       DidYouMean(key, {"fail-if", "allow", "allow-failed-job"})));
    }
  }
  return absl::OkStatus();
}

}  // namespace lull
