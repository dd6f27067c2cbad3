#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "daemon/words/format.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

Json PartOf(uint64_t part_ns, uint64_t whole_ns) {
  return If(whole_ns > 0, Percent(D(part_ns), D(whole_ns)));
}

Json RolesJson(const v1::Hot& hot) {
  Json rows = Json::array();
  for (const v1::HotRole& role : hot.roles()) {
    rows.push_back({{"role", RoleKey(role.role())},
                    {"samples", role.samples()},
                    {"time_ms", Ms(role.time_ns())},
                    {"running_percent", PartOf(role.running_ns(), role.time_ns())},
                    {"ready_percent", PartOf(role.ready_ns(), role.time_ns())},
                    {"blocked_percent", PartOf(role.blocked_ns(), role.time_ns())},
                    {"no_python_percent", PartOf(role.no_python_ns(), role.time_ns())},
                    {"failed_percent", PartOf(role.failed_ns(), role.time_ns())},
                    {"cut_percent", PartOf(role.cut_ns(), role.time_ns())}});
  }
  return rows;
}

Json LinesJson(const v1::Hot& hot) {
  Json rows = Json::array();
  for (const v1::HotLine& line : hot.lines()) {
    const bool known = line.has_total();  // enough samples
    rows.push_back({{"role", RoleKey(line.role())},
                    {"file", line.site().file()},
                    {"line", line.site().line()},
                    {"function", line.site().function()},
                    {"samples", line.samples()},
                    {"self_samples", line.self_samples()},
                    {"self_ms", Ms(line.self_ns())},
                    {"total_ms", Ms(line.total_ns())},
                    {"self_percent", If(known, line.self().percent())},
                    {"self_low_percent", If(known, line.self().low_percent())},
                    {"self_high_percent", If(known, line.self().high_percent())},
                    {"total_percent", If(known, line.total().percent())},
                    {"low_percent", If(known, line.total().low_percent())},
                    {"high_percent", If(known, line.total().high_percent())},
                    {"running_percent", PartOf(line.running_ns(), line.total_ns())},
                    {"ready_percent", PartOf(line.ready_ns(), line.total_ns())},
                    {"blocked_percent", PartOf(line.blocked_ns(), line.total_ns())},
                    {"cut", line.cut()},
                    {"stack", StackJson(line.stack(), false)}});
    // For the backward pass it has more to say, as everywhere.
    if (line.site().has_backward_of() || line.site().has_forward_site()) {
      const Json site = SiteJson(line.site());
      for (const char* key : {"node", "backward_of", "forward_site"}) {
        rows.back()[key] = site[key];
      }
    }
  }
  return rows;
}

Json SamplesJson(const v1::Hot& hot) {
  Json json = RowJson(hot.counters());
  json["denied_processes"] = hot.denied_processes();
  json["unreadable_processes"] = hot.unreadable_processes();
  return json;
}

}  // namespace

Json DoingJson(const v1::GapRow& gap, bool of_functions) {
  Json rows = Json::array();
  for (const v1::DoingLine& line : gap.doing()) {
    const bool known = line.has_share();
    rows.push_back(
        {{"file", line.site().file()},
         {"line", line.site().line()},
         {"function", line.site().function()},
         {"samples", line.samples()},
         {"share_percent", If(known, line.share().percent())},
         {"self_percent", If(known, line.self().percent())},
         {"low_percent", If(known, line.share().low_percent())},
         {"high_percent", If(known, line.share().high_percent())},
         {"own_percent", If(known, line.own().percent())},
         {"own_low_percent", If(known, line.own().low_percent())},
         {"own_high_percent", If(known, line.own().high_percent())},
         {"callee", line.has_callee() ? SiteJson(line.callee()) : Json(nullptr)}});
    if (of_functions) rows.back()["line_is_function_start"] = true;
  }
  return rows;
}

Json HotJson(const v1::ReportReply& reply) {
  return AnswerJson(reply, {{"region", TextOrNull(reply.hot().region())},
                            {"roles", RolesJson(reply.hot())},
                            {"lines", LinesJson(reply.hot())},
                            {"samples", SamplesJson(reply.hot())}});
}

// What the above prints.
namespace schema {
namespace {

Json HotRoles() {
  return ListOf(Object({{"role", Roles()},
                        {"samples", Count()},
                        {"time_ms", Amount()},
                        {"running_percent", AmountOrNull()},
                        {"ready_percent", AmountOrNull()},
                        {"blocked_percent", AmountOrNull()},
                        {"no_python_percent", AmountOrNull()},
                        {"failed_percent", AmountOrNull()},
                        {"cut_percent", AmountOrNull()}}));
}

Json HotLines() {
  return ListOf(Object({{"role", Roles()},
                        {"file", Text()},
                        {"line", Whole()},
                        {"function", Text()},
                        {"samples", Count()},
                        {"self_samples", Count()},
                        {"self_ms", Amount()},
                        {"total_ms", Amount()},
                        {"self_percent", AmountOrNull()},
                        {"self_low_percent", AmountOrNull()},
                        {"self_high_percent", AmountOrNull()},
                        {"total_percent", AmountOrNull()},
                        {"low_percent", AmountOrNull()},
                        {"high_percent", AmountOrNull()},
                        {"running_percent", AmountOrNull()},
                        {"ready_percent", AmountOrNull()},
                        {"blocked_percent", AmountOrNull()},
                        {"cut", Flag()},
                        {"stack", ListOf(Ref("frame"))},
                        {"node", TextOrNull()},
                        {"backward_of", OrNull(Ref("site"))},
                        {"forward_site", OrNull(Ref("site"))}},
                       {"node", "backward_of", "forward_site"}));
}

}  // namespace

Json Hot() {
  return Answer({{"region", TextOrNull()},
                 {"roles", HotRoles()},
                 {"lines", HotLines()},
                 {"samples", RowOf<v1::HotSamples>()
                                 .Set("denied_processes", Count())
                                 .Set("unreadable_processes", Count())
                                 .Done()}});
}

}  // namespace schema
}  // namespace lull
