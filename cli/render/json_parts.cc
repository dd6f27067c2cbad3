#include "cli/render/json_parts.h"

#include "absl/strings/match.h"
#include "cli/render/arming.h"
#include "daemon/base/backward_frames.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"
#include "google/protobuf/descriptor.h"

namespace lull {
namespace {

Json RecordedJson(const v1::Job& job) {
  if (!job.partly_recorded()) {
    return Json::array({{{"start_ms", 0.0}, {"end_ms", Ms(job.duration_ns())}}});
  }
  Json spans = Json::array();
  for (const v1::Job::Stretch& span : job.recorded()) {
    spans.push_back({{"start_ms", Ms(span.start_ns())}, {"end_ms", Ms(span.end_ns())}});
  }
  return spans;
}

}  // namespace

Json JobJson(const v1::Job& job) {
  Json json = {
      {"id", job.id()},
      {"name", job.name()},
      {"command", job.command()},
      {"host", job.host()},
      {"started_at", FormatUtc(job.start_realtime_ns())},
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
      {"end_seen", job.ended() && !job.end_unseen()},
      {"complete_until_ms",
       Ms(job.end_unseen() ? job.complete_until_ns() : job.duration_ns())},
      {"batches_set_aside", job.batches_set_aside()},
      {"unreachable_ms", Ms(job.unreachable_ns())},
  };
  if (job.exit_status_known()) json["exit_status"] = job.exit_status();
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

Json LossesJson(const v1::Losses& losses) {
  const auto& fields = *losses.GetDescriptor();
  const auto& reflection = *losses.GetReflection();
  Json json = Json::object();
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto* field = fields.field(i);
    std::string name = field->name();
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32) {
      json[name] = reflection.GetUInt32(losses, field);
    } else if (absl::EndsWith(name, "_ns")) {
      json[name.substr(0, name.size() - 3) + "_ms"] =
          Ms(reflection.GetUInt64(losses, field));
    } else {
      json[name] = reflection.GetUInt64(losses, field);
    }
  }
  return json;
}

Json OverheadJson(const v1::Overhead& overhead) {
  return {{"self_ms", Ms(overhead.self_ns())},
          {"percent", overhead.percent()},
          {"relay_cpu_ms", Ms(overhead.relay_cpu_ns())},
          {"budget_percent", overhead.budget_percent()}};
}

}  // namespace lull
