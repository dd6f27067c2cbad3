#include "cli/render/baseline.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/render/json.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "google/protobuf/util/json_util.h"

namespace lull {
namespace {

using compare::ProcessReplies;
using compare::ProcessSteps;
using compare::Run;

constexpr int kVersion = 1;
// What is written is a third as deep. What is read may be of anybody, and is gone
// through by recursion.
constexpr int kDeepest = 64;

absl::Status NotOurs(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("is no baseline of lull: ", why));
}

Json MessageJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) {
    return nullptr;
  }
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

bool FromJson(const Json& json, google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return google::protobuf::util::JsonStringToMessage(json.dump(), message, options)
      .ok();
}

// What footing, facts and step times are made of.
v1::ReportReply Whole(const v1::ReportReply& reply) {
  v1::ReportReply kept;
  *kept.mutable_job() = reply.job();
  kept.mutable_job()->clear_command();
  *kept.mutable_losses() = reply.losses();
  *kept.mutable_gpu() = reply.gpu();
  kept.mutable_gpu()->clear_spans();
  *kept.mutable_devices() = reply.devices();
  *kept.mutable_processes() = reply.processes();
  for (v1::ProcessRow& row : *kept.mutable_processes()) row.clear_command();
  if (reply.details_size() > 0) {
    kept.add_details()->mutable_steps()->set_source(reply.details(0).steps().source());
  }
  return kept;
}

v1::ReportReply Syncs(const v1::ReportReply& reply) {
  v1::ReportReply kept;
  kept.mutable_gpu()->set_traced_ns(reply.gpu().traced_ns());
  *kept.mutable_syncs() = reply.syncs();
  for (v1::SyncPoint& row : *kept.mutable_syncs()->mutable_sync_points()) {
    row.clear_stack();
    row.clear_native_stack();
  }
  return kept;
}

// Json itself makes -1 and 1e300 fit.
bool IsWithin(const Json& json, uint64_t most) {
  return json.is_number_unsigned() && json.get<uint64_t>() <= most;
}

// [file, line, its fingerprint, that of the line before, of the line after]
Json LinesJson(const compare::LineTexts& lines) {
  Json json = Json::array();
  for (const auto& [place, text] : lines) {
    json.push_back({place.first, place.second, text.own, text.before, text.after});
  }
  return json;
}

// Throws as Json does.
absl::StatusOr<compare::LineTexts> ReadLines(const Json& json) {
  compare::LineTexts lines;
  for (const Json& line : json) {
    if (!IsWithin(line.at(1), INT32_MAX)) {
      return NotOurs("a number of it is none that lull writes");
    }
    compare::LineText& text =
        lines[{line.at(0).get<std::string>(), line.at(1).get<int32_t>()}];
    text.own = line.at(2).get<std::string>();
    text.before = line.at(3).get<std::string>();
    text.after = line.at(4).get<std::string>();
  }
  return lines;
}

Json ProcessJson(const ProcessSteps& steps, const ProcessReplies& replies) {
  Json json = {{"pid", steps.pid},         {"rank", steps.rank},
               {"dropped", steps.dropped}, {"steady", steps.steady},
               {"steps", Json::array()},   {"all", MessageJson(Syncs(replies.all))},
               {"pieces", Json::array()}};
  for (const compare::Step& step : steps.steps) {
    json["steps"].push_back(
        {step.number, step.start_ns, step.duration_ns, step.traced});
  }
  for (const v1::ReportReply& piece : replies.pieces) {
    json["pieces"].push_back(MessageJson(Syncs(piece)));
  }
  return json;
}

bool AreNumbers(const Json& process) {
  const Json &steps = process.at("steps"), &rank = process.at("rank");
  return IsWithin(process.at("pid"), UINT32_MAX) &&
         (rank == -1 || IsWithin(rank, INT32_MAX)) &&
         IsWithin(process.at("dropped"), kMaxWireTotal) &&
         std::all_of(steps.begin(), steps.end(), [](const Json& step) {
           return IsWithin(step.at(0), kMaxWireTotal) &&
                  IsWithin(step.at(1), kMaxWireTotal) &&
                  IsWithin(step.at(2), kMaxWireTotal);
         });
}

// Throws as Json does.
absl::Status ReadProcess(const Json& json, Run* run) {
  if (!AreNumbers(json)) return NotOurs("a number of it is none that lull writes");
  ProcessSteps& steps = run->processes.emplace_back();
  ProcessReplies& replies = run->replies.emplace_back();
  steps.pid = json.at("pid").get<uint32_t>();
  steps.rank = json.at("rank").get<int32_t>();
  steps.dropped = json.at("dropped").get<uint64_t>();
  steps.steady = json.at("steady").get<bool>();
  for (const Json& row : json.at("steps")) {
    steps.steps.push_back({row.at(0).get<uint64_t>(), row.at(1).get<uint64_t>(),
                           row.at(2).get<uint64_t>(), row.at(3).get<bool>()});
  }
  const Json& pieces = json.at("pieces");
  if (steps.steps.empty() || pieces.size() != compare::kPieces ||
      !FromJson(json.at("all"), &replies.all)) {
    return NotOurs("a process of it is not whole");
  }
  for (size_t i = 0; i < compare::kPieces; ++i) {
    if (!FromJson(pieces.at(i), &replies.pieces[i])) {
      return NotOurs("a process of it is not whole");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<compare::Runs> ReadRuns(const Json& json) {
  if (!json.is_object() || !json.contains("lull_baseline")) {
    return NotOurs("it has no lull_baseline");
  }
  if (json.at("lull_baseline") != kVersion) {
    return NotOurs(absl::StrCat("this lull reads version ", kVersion,
                                "; write it anew with lull check --write-baseline"));
  }
  compare::Runs runs;
  std::set<std::string> seen;
  for (const Json& one : json.at("runs")) {
    Run& run = runs.emplace_back();
    if (!FromJson(one.at("whole"), &run.whole)) return NotOurs("a run is not whole");
    if (!seen.insert(run.whole.job().id()).second)
      return NotOurs("a run is there twice");
    if (!IsWithin(one.at("processes_left_out"), INT32_MAX)) {
      return NotOurs("a number of it is none that lull writes");
    }
    run.processes_left_out = one.at("processes_left_out").get<size_t>();
    for (const Json& file : one.at("files")) run.files.insert(file.get<std::string>());
    if (one.contains("lines")) {  // an older lull wrote none
      LULL_ASSIGN_OR_RETURN(run.lines, ReadLines(one.at("lines")));
    }
    for (const Json& process : one.at("processes")) {
      LULL_RETURN_IF_ERROR(ReadProcess(process, &run));
    }
  }
  if (runs.empty()) return NotOurs("it has no run");
  return runs;
}

}  // namespace

std::string BaselineText(const compare::Runs& runs) {
  Json json = {{"lull_baseline", kVersion}, {"runs", Json::array()}};
  for (const Run& run : runs) {
    Json& one = json["runs"].emplace_back();
    one = {{"whole", MessageJson(Whole(run.whole))},
           {"processes_left_out", run.processes_left_out},
           {"files", Json::array()},
           {"lines", LinesJson(compare::LinesOf(run))},
           {"processes", Json::array()}};
    for (const std::string& file : compare::FilesOf(run)) one["files"].push_back(file);
    for (size_t i = 0; i < run.processes.size(); ++i) {
      one["processes"].push_back(ProcessJson(run.processes[i], run.replies[i]));
    }
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<compare::Runs> ReadBaseline(absl::string_view text) {
  bool deep = false;
  const auto shallow = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  const Json json = Json::parse(text.begin(), text.end(), shallow, false);
  if (deep) return NotOurs("it is too deep");
  if (json.is_discarded()) return NotOurs("it is no JSON");
  try {
    return ReadRuns(json);
  } catch (const Json::exception& error) {
    return NotOurs(error.what());
  }
}

}  // namespace lull
