// Replies of the collector as JSON, the same for every verb: snake_case keys in
// a fixed order, durations as `*_ms` numbers, bytes and counts as integers, null
// where something is not known.
#pragma once

#include <nlohmann/json.hpp>

#include "query.pb.h"

namespace lull {

using Json = nlohmann::ordered_json;

Json JobsJson(const v1::ListJobsReply& reply);
Json SyncsJson(const v1::ReportReply& reply);
Json AllocationsJson(const v1::ReportReply& reply);
Json GcJson(const v1::ReportReply& reply);
Json WaitsJson(const v1::ReportReply& reply);
Json GapsJson(const v1::ReportReply& reply);
Json KernelsJson(const v1::ReportReply& reply);
Json OperatorsJson(const v1::ReportReply& reply);
Json StepsJson(const v1::ReportReply& reply);
Json HotJson(const v1::ReportReply& reply);
Json MemoryJson(const v1::ReportReply& reply);
Json DataJson(const v1::ReportReply& reply);
Json RegionsJson(const v1::ReportReply& reply);
Json ReportJson(const v1::ReportReply& reply);

// Indented text with a newline at its end. Invalid UTF-8 is replaced.
std::string JsonText(const Json& json);

}  // namespace lull
