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
Json RanksJson(const v1::ReportReply& reply);
Json StacksJson(const v1::ReportReply& reply);
Json RegionsJson(const v1::ReportReply& reply);
Json ReportJson(const v1::ReportReply& reply);
// The source text around the sites of an answer that was asked for it, a part of the
// above.
Json SourcesJson(const v1::ReportReply& reply);

// What they print, as JSON Schemas.
namespace schema {

Json Jobs();
Json Syncs();
Json Allocations();
Json Gc();
Json Waits();
Json Gaps();
Json Kernels();
Json Operators();
Json Steps();
Json Hot();
Json Memory();
Json Data();
Json Ranks();
Json Stacks();
Json Regions();
Json Report();

}  // namespace schema

// The verbs that show a job, as --help lists them.
struct VerbSchema {
  const char* verb;
  Json (*schema)();
};
inline constexpr VerbSchema kVerbSchemas[] = {
    {"report", schema::Report}, {"gaps", schema::Gaps},
    {"hot", schema::Hot},       {"kernels", schema::Kernels},
    {"ops", schema::Operators}, {"steps", schema::Steps},
    {"data", schema::Data},     {"regions", schema::Regions},
    {"syncs", schema::Syncs},   {"waits", schema::Waits},
    {"gc", schema::Gc},         {"allocs", schema::Allocations},
    {"memory", schema::Memory}, {"ranks", schema::Ranks},
    {"stacks", schema::Stacks}};

// Indented text with a newline at its end. Invalid UTF-8 is replaced.
std::string JsonText(const Json& json);

}  // namespace lull
