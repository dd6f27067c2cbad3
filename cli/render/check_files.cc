// What a gate found, as other tools read it: JUnit XML, SARIF 2.1.0, GitHub's workflow
// commands. Names are of the program's making and may hold anything.
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "cli/render/check.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

using check::Judgement;
using check::Outcome;
using check::Part;

constexpr size_t kMostAnnotations = 10;  // GitHub drops others without a word
constexpr size_t kLongestText = 4000;

// Valid UTF-8 without anything that steers: what is neither becomes U+FFFD.
std::string Plain(absl::string_view text) {
  const Json json = Shortened(text, kLongestText);
  const std::string quoted =
      json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

// Also without the two characters that XML 1.0 has not and UTF-8 has.
std::string Xml(absl::string_view text) {
  return absl::StrReplaceAll(Plain(text), {{"&", "&amp;"},
                                           {"<", "&lt;"},
                                           {">", "&gt;"},
                                           {"\"", "&quot;"},
                                           {"'", "&apos;"},
                                           {"\xef\xbf\xbe", "?"},
                                           {"\xef\xbf\xbf", "?"}});
}

std::string RuleAndSentence(const Judgement& judgement) {
  return absl::StrCat(judgement.rule.text, ": ", RuleSentence(judgement));
}

// ---- JUnit ----

std::string JunitCase(absl::string_view name, absl::string_view inner) {
  return absl::StrCat("    <testcase classname=\"lull.check\" name=\"", Xml(name),
                      "\" time=\"0\">", inner, "</testcase>\n");
}

std::string JunitRule(const Judgement& judgement) {
  if (judgement.outcome == Outcome::kPassed) {
    return JunitCase(judgement.rule.text, "");
  }
  const bool failed = judgement.outcome == Outcome::kFailed;
  const char* tag = failed ? "failure" : "error";
  // Again in the text: some readers show the message alone, others the text.
  const std::string message = RuleSentence(judgement);
  std::string text = Xml(message);
  for (const Part& part : judgement.measured.parts) {
    absl::StrAppend(&text, "\n", Xml(PartSentence(judgement.rule, part)));
  }
  return JunitCase(
      judgement.rule.text,
      absl::StrCat("<", tag, " type=\"", failed ? "failed" : "cannot be judged",
                   "\" message=\"", Xml(message), "\">", text, "</", tag, ">"));
}

std::string JunitNotes(const std::vector<std::string>& notes) {
  if (notes.empty()) return "";
  std::string text;
  for (const std::string& note : notes) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", "note: ", Xml(note));
  }
  return absl::StrCat("    <system-out>", text, "</system-out>\n");
}

// ---- Places ----

std::string Relative(absl::string_view file, absl::string_view root) {
  if (!root.empty() && absl::StartsWith(file, root) && file.size() > root.size() + 1 &&
      file[root.size()] == '/') {
    file.remove_prefix(root.size() + 1);
  }
  return std::string(file);
}

// A path as a reference of RFC 3986.
std::string Uri(absl::string_view path) {
  std::string uri = absl::StartsWith(path, "/") ? "file://" : "";
  for (unsigned char c : Plain(path)) {
    if (absl::ascii_isalnum(c) || absl::StrContains("/-._~", static_cast<char>(c))) {
      uri.push_back(static_cast<char>(c));
    } else {
      absl::StrAppendFormat(&uri, "%%%02X", c);
    }
  }
  return uri;
}

// ---- SARIF ----

// The same for the same place of the program, whatever stands above it (FNV-1a).
std::string Fingerprint(const Judgement& judgement, const Part& part,
                        absl::string_view root) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& word :
       {judgement.rule.metric.name, Relative(part.site.file(), root),
        part.site.function(), part.api}) {
    for (unsigned char c : word) hash = (hash ^ c) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  }
  return absl::StrFormat("%016x", hash);
}

Json SarifLocation(const v1::Site& site, absl::string_view root) {
  Json place = {{"artifactLocation", {{"uri", Uri(Relative(site.file(), root))}}}};
  if (site.line() > 0) place["region"] = {{"startLine", site.line()}};
  return Json::array({{{"physicalLocation", std::move(place)}}});
}

Json SarifResult(const Judgement& judgement, const std::string& text) {
  return {{"ruleId", judgement.rule.metric.name},
          {"level", "error"},
          {"message", {{"text", Plain(text)}}}};
}

// A result for each line that makes up the value, or one without a place.
void AddSarifResults(const Judgement& judgement, absl::string_view root,
                     Json* results) {
  bool placed = false;
  std::set<std::pair<std::string, int>> seen;  // equal fingerprints, in their order
  std::vector<std::string> fingerprints;
  for (const Part& part : judgement.measured.parts) {
    if (!part.name.empty() || part.site.file().empty()) continue;
    Json result =
        SarifResult(judgement, absl::StrCat(RuleAndSentence(judgement), "; ",
                                            PartSentence(judgement.rule, part)));
    result["locations"] = SarifLocation(part.site, root);
    const std::string hash = Fingerprint(judgement, part, root);
    int ordinal = 1;
    while (!seen.insert({hash, ordinal}).second) ++ordinal;
    result["partialFingerprints"] = {{"lullSite/v1", absl::StrCat(hash, ":", ordinal)}};
    if (part.change == "new" || part.change == "moved") result["baselineState"] = "new";
    if (part.allowed.empty()) {
      placed = true;
    } else {
      result["suppressions"] = Json::array({{{"kind", "external"},
                                             {"status", "accepted"},
                                             {"justification", Plain(part.allowed)}}});
    }
    results->push_back(std::move(result));
  }
  if (!placed) results->push_back(SarifResult(judgement, RuleAndSentence(judgement)));
}

// ---- GitHub ----

std::string AnnotationText(absl::string_view text) {
  return absl::StrReplaceAll(Plain(text), {{"%", "%25"}, {"\r", "%0D"}, {"\n", "%0A"}});
}

std::string AnnotationProperty(absl::string_view text) {
  return absl::StrReplaceAll(AnnotationText(text), {{":", "%3A"}, {",", "%2C"}});
}

void AddAnnotations(const Judgement& judgement, absl::string_view root,
                    std::vector<std::string>* lines) {
  const std::string sentence = RuleAndSentence(judgement);
  bool placed = false;
  for (const Part& part : judgement.measured.parts) {
    if (judgement.outcome != Outcome::kFailed || !part.name.empty() ||
        part.site.file().empty() || !part.allowed.empty()) {
      continue;
    }
    placed = true;
    std::string line = absl::StrCat(
        "::error file=", AnnotationProperty(Relative(part.site.file(), root)));
    if (part.site.line() > 0) absl::StrAppend(&line, ",line=", part.site.line());
    lines->push_back(
        absl::StrCat(line, ",title=lull check::",
                     AnnotationText(absl::StrCat(sentence, "; ",
                                                 PartSentence(judgement.rule, part)))));
  }
  if (placed) return;
  lines->push_back(
      absl::StrCat("::error title=lull check",
                   judgement.outcome == Outcome::kFailed ? "" : " (cannot be judged)",
                   "::", AnnotationText(sentence)));
}

}  // namespace

std::string CheckJunit(const check::Verdict& verdict) {
  std::string cases;
  size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  for (const Judgement& judgement : verdict.rules) {
    ++tests;
    failures += judgement.outcome == Outcome::kFailed;
    errors += judgement.outcome == Outcome::kCannotJudge;
    cases += JunitRule(judgement);
    for (const Part& part : judgement.measured.parts) {
      if (part.allowed.empty()) continue;
      ++tests;
      ++skipped;
      cases += JunitCase(
          absl::StrCat(judgement.rule.text, ": ", FormatSite(part.site), " ", part.api),
          absl::StrCat("<skipped message=\"", Xml(part.allowed), "\"/>"));
    }
  }
  const std::string counts = absl::StrCat(
      "name=\"lull check\" tests=\"", tests, "\" failures=\"", failures, "\" errors=\"",
      errors, "\" skipped=\"", skipped, "\" time=\"0\">\n");
  return absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ",
                      counts, "  <testsuite ", counts, cases,
                      JunitNotes(verdict.warnings), "  </testsuite>\n</testsuites>\n");
}

std::string CheckSarif(const check::Verdict& verdict, absl::string_view root) {
  Json rules = Json::array(), results = Json::array(), notifications = Json::array();
  std::set<std::string> named;
  for (const Judgement& judgement : verdict.rules) {
    const std::string& id = judgement.rule.metric.name;
    if (named.insert(id).second) {
      rules.push_back(
          {{"id", id}, {"shortDescription", {{"text", absl::StrCat(id, " (lull)")}}}});
    }
    if (judgement.outcome == Outcome::kFailed) {
      AddSarifResults(judgement, root, &results);
    } else if (judgement.outcome == Outcome::kCannotJudge) {
      notifications.push_back(
          {{"level", "error"},
           {"message", {{"text", Plain(RuleAndSentence(judgement))}}}});
    }
  }
  const bool judged = notifications.empty() && !verdict.rules.empty();
  for (const std::string& note : verdict.warnings) {
    notifications.push_back({{"level", "note"}, {"message", {{"text", Plain(note)}}}});
  }
  Json invocation = {{"executionSuccessful", judged},
                     {"toolExecutionNotifications", std::move(notifications)}};
  Json run = {{"tool", {{"driver", {{"name", "lull"}, {"rules", std::move(rules)}}}}},
              {"invocations", Json::array({std::move(invocation)})},
              {"results", std::move(results)}};
  return JsonText({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                   {"version", "2.1.0"},
                   {"runs", Json::array({std::move(run)})}});
}

std::string CheckAnnotations(const check::Verdict& verdict, absl::string_view root) {
  std::vector<std::string> lines;
  for (Outcome outcome : {Outcome::kFailed, Outcome::kCannotJudge}) {
    for (const Judgement& judgement : verdict.rules) {
      if (judgement.outcome == outcome) AddAnnotations(judgement, root, &lines);
    }
  }
  std::string text;
  const size_t shown =
      lines.size() > kMostAnnotations ? kMostAnnotations - 1 : lines.size();
  for (size_t i = 0; i < shown; ++i) absl::StrAppend(&text, lines[i], "\n");
  if (shown < lines.size()) {
    absl::StrAppend(&text, "::error title=lull check::", lines.size() - shown,
                    " more: see the output of lull check\n");
  }
  return text;
}

}  // namespace lull
