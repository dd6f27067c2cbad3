#include <string>
#include <utility>
#include <vector>

#include "cli/render/check.h"
#include "cli/render/json_parts.h"
#include "cli/render/schema.h"
#include "cli/render/schema_parts.h"

namespace lull {
namespace {

using check::Judgement;
using check::Part;
using check::Rule;

Json CheckedRuns(const std::vector<compare::RunFacts>& runs) {
  Json rows = Json::array();
  for (const compare::RunFacts& run : runs) {
    rows.push_back({{"id", run.job.id()},
                    {"name", TextOrNull(run.job.name())},
                    {"steps", run.steps},
                    {"dropped_steps", run.dropped}});
  }
  return rows;
}

Json PartJson(const Part& part) {
  const bool of_site = part.name.empty();
  return {{"name", TextOrNull(part.name)},
          {"site", of_site ? SiteJson(part.site) : Json(nullptr)},
          {"api", TextOrNull(part.api)},
          {"value", part.value},
          {"change", TextOrNull(part.change)},
          {"moved_from", TextOrNull(part.moved_from)},
          {"allowed", TextOrNull(part.allowed)}};
}

Json RuleJson(const Judgement& judgement) {
  const Rule& rule = judgement.rule;
  Json parts = Json::array();
  for (const Part& part : judgement.measured.parts) parts.push_back(PartJson(part));
  return {{"rule", rule.text},
          {"metric", rule.metric.name},
          {"unit", TextOrNull(rule.metric.unit)},
          {"operator", check::Sign(rule.op)},
          {"bound", rule.bound},
          {"verdict", OutcomeKey(judgement.outcome)},
          {"value", OrNull(judgement.measured.value)},
          {"of", TextOrNull(judgement.measured.of)},
          {"low", OrNull(judgement.measured.low)},
          {"high", OrNull(judgement.measured.high)},
          {"reason", TextOrNull(judgement.measured.why_not)},
          {"parts", std::move(parts)}};
}

}  // namespace

Json CheckJson(const check::Verdict& verdict) {
  Json rules = Json::array(), warnings = Json::array();
  for (const Judgement& judgement : verdict.rules) rules.push_back(RuleJson(judgement));
  for (const std::string& warning : verdict.warnings) warnings.push_back(warning);
  return {{"verdict", OutcomeKey(verdict.outcome)},
          {"exit_status", ExitStatusOf(verdict.outcome)},
          {"rules", std::move(rules)},
          {"warnings", std::move(warnings)},
          {"runs", CheckedRuns(verdict.runs)},
          {"baseline", CheckedRuns(verdict.baseline)}};
}

namespace schema {

Json Check() {
  auto outcome = [] { return OneOf({"passed", "failed", "cannot_judge"}); };
  auto runs = [] {
    return ListOf(Object({{"id", Text()},
                          {"name", TextOrNull()},
                          {"steps", Count()},
                          {"dropped_steps", Count()}}));
  };
  Json part = Object({{"name", TextOrNull()},
                      {"site", OrNull(Ref("site"))},
                      {"api", TextOrNull()},
                      {"value", Amount()},
                      {"change", OrNull(OneOf({"new", "moved", "rare"}))},
                      {"moved_from", TextOrNull()},
                      {"allowed", TextOrNull()}});
  Json rule = Object({{"rule", Text()},
                      {"metric", Text()},
                      {"unit", OrNull(OneOf({"ms", "%", "MiB"}))},
                      {"operator", OneOf({">", ">=", "<", "<=", "==", "!="})},
                      {"bound", Number()},
                      {"verdict", outcome()},
                      {"value", OrNull(Number())},
                      {"of", TextOrNull()},
                      {"low", OrNull(Number())},
                      {"high", OrNull(Number())},
                      {"reason", TextOrNull()},
                      {"parts", ListOf(std::move(part))}});
  return Object({{"verdict", outcome()},
                 {"exit_status", Count()},
                 {"rules", ListOf(std::move(rule))},
                 {"warnings", ListOf(Text())},
                 {"runs", runs()},
                 {"baseline", runs()}});
}

}  // namespace schema
}  // namespace lull
