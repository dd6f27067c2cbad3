#include "cli/render/json_parts.h"

#include "cli/render/arming.h"
#include "cli/render/row_json.h"
#include "daemon/base/backward_frames.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

Json RecordedJson(const v1::Job& job) {
  if (!job.partly_recorded()) {
    return Json::array({{{"start_ms", 0.0}, {"end_ms", Ms(job.duration_ns())}}});
  }
  return RowsJson(job.recorded());
}

Json CountsJson(
    const google::protobuf::RepeatedPtrField<v1::ImportInfo::Count>& counts) {
  Json json = Json::object();
  for (const v1::ImportInfo::Count& row : counts) json[row.what()] = row.count();
  return json;
}

Json ImportedJson(const v1::ImportInfo& told) {
  return {{"format", told.format()},
          {"files", std::vector<std::string>(told.files().begin(), told.files().end())},
          {"files_in_all", told.files_in_all()},
          {"events", told.events()},
          {"ignored", CountsJson(told.ignored())},
          {"found", CountsJson(told.found())},
          {"not_applied", std::vector<std::string>(told.not_applied().begin(),
                                                   told.not_applied().end())},
          {"line_is_function_start", told.line_is_function_start()},
          {"resolution_ns", told.resolution_ns()},
          {"segments", RowsJson(told.segments())}};
}

// Traces of before 2024 do not tell.
Json UtcOrNull(uint64_t realtime_ns) {
  return realtime_ns == 0 ? Json(nullptr) : Json(FormatUtc(realtime_ns));
}

Json StepCostJson(const v1::StepCost& cost) {
  Json json = RowJson(cost);
  auto told = [](bool has, const v1::Estimate& estimate) {
    return has ? RowJson(estimate) : Json(nullptr);
  };
  json["traced_longer"] = told(cost.has_traced_longer(), cost.traced_longer());
  json["paid"] = told(cost.has_paid(), cost.paid());
  json["between_longer"] = told(cost.has_between_longer(), cost.between_longer());
  json["recorded_longer"] = told(cost.has_recorded_longer(), cost.recorded_longer());
  json["recording_paid"] = told(cost.has_recording_paid(), cost.recording_paid());
  if (cost.sampled_from_step() == 0) SetNull(json, {"sampled_from_step"});
  return json;
}

}  // namespace

Json AnswerJson(const v1::ReportReply& reply, const Json& body) {
  Json json;
  json["job"] = JobJson(reply.job());
  json.update(body);
  json["phase"] = reply.phase() == v1::PHASE_STEADY  ? "steady"
                  : reply.phase() == v1::PHASE_SETUP ? "setup"
                                                     : "all";
  json["setup_ms"] = MsIf(reply.setup_ns() > 0, reply.setup_ns());
  json["losses"] = RowJson(reply.losses());
  json["overhead"] = RowJson(reply.overhead());
  json["overhead"]["step_cost"] = reply.overhead().has_step_cost()
                                      ? StepCostJson(reply.overhead().step_cost())
                                      : Json(nullptr);
  // A relay tells it when it ends.
  if (reply.overhead().relay_cpu_ns() == 0) {
    SetNull(json["overhead"], {"relay_cpu_ms"});
  }
  if (reply.job().has_imported()) {  // nobody knows what recording the trace cost
    SetNull(json["overhead"], {"self_ms", "percent", "relay_cpu_ms", "budget_percent"});
  }
  return json;
}

Json JobJson(const v1::Job& job) {
  Json json = {
      {"id", job.id()},
      {"name", job.name()},
      {"command", job.command()},
      {"host", job.host()},
      {"started_at", UtcOrNull(job.start_realtime_ns())},
      {"duration_ms", Ms(job.duration_ns())},
      {"exit_status", nullptr},
      {"ended", job.ended()},
      {"attached", job.attached()},
      {"events", job.events()},
      {"processes", job.processes()},
      {"working_processes", job.working_processes()},
      {"armed", job.ended() ? Json(nullptr) : Json(!job.asleep())},
      {"recorded", RecordedJson(job)},
      {"recorded_ms", Ms(RecordedNs(job))},
      {"steps_sampled", AreStepsSampled(job)},
      {"since_step_ms", MsIf(job.step_ns() > 0, job.since_step_ns())},
      {"step_ms", MsIf(job.step_ns() > 0, job.step_ns())},
      {"end_seen", job.ended() && !job.end_unseen()},
      {"complete_until_ms",
       Ms(job.end_unseen() ? job.complete_until_ns() : job.duration_ns())},
      {"batches_set_aside", job.batches_set_aside()},
      {"unreachable_ms", Ms(job.unreachable_ns())},
      {"tags", job.tags()},
      {"pinned", job.pinned()},
  };
  if (job.exit_status_known()) json["exit_status"] = job.exit_status();
  if (job.has_imported()) json["imported"] = ImportedJson(job.imported());
  if (!job.parts().empty()) json["parts"] = RowsJson(job.parts());
  return json;
}

Json SiteJson(const v1::Site& site) {
  Json json = {
      {"file", site.file()}, {"line", site.line()}, {"function", site.function()}};
  if (!site.has_backward_of() && !site.has_forward_site()) return json;
  json["node"] =
      site.function() == kUnknownNode ? Json(nullptr) : Json(site.function());
  json["backward_of"] =
      site.has_backward_of() ? SiteJson(site.backward_of()) : Json(nullptr);
  json["forward_site"] =
      site.has_forward_site() ? SiteJson(site.forward_site()) : Json(nullptr);
  return json;
}

}  // namespace lull
