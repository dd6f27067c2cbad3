// What the verbs that ask about a job have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cli/commands/collector_options.h"
#include "cli/render/json.h"
#include "query.pb.h"

namespace lull {

struct QueryOptions {
  CollectorFlags collector;
  std::string job;
  bool json = false;
  uint32_t top = 20;
  std::string by = "line";
  std::optional<int32_t> rank;
  std::optional<uint32_t> pid;
  std::string phase;
  std::string since;
  std::string until;
  std::string role;           // of `lull hot`
  bool folded = false;        // of such verbs, too
  std::string sort = "time";  // of `lull ops`
  std::string region;         // of `lull gaps` and `lull hot`
  std::string html;           // of `lull report`: a file, or "-"
};

// "90s", "2m", "1.5h", "7d", "250ms" or "90" (seconds), in nanoseconds.
absl::StatusOr<uint64_t> ParseTime(absl::string_view text);

// INVALID_ARGUMENT names the option that is wrong.
absl::StatusOr<v1::ReportRequest> MakeRequest(const QueryOptions& options);

// A verb that shows one section of a report, or, with SECTION_UNSPECIFIED, the
// overview.
struct AnswerVerb {
  const char* name;
  const char* description;
  const char* example;
  v1::Section section;
  std::string (*text)(const v1::ReportReply& reply, v1::GroupBy group_by);
  Json (*json)(const v1::ReportReply& reply);
  // For verbs about samples of threads: stacks for flame graphs.
  std::string (*folded)(const v1::ReportReply& reply) = nullptr;
  bool sorts = false;      // by GPU time or memory
  bool by_region = false;  // can be asked for one region of the program
  bool as_page = false;    // can be written as a page
};
// All of them (answers.cc).
absl::Span<const AnswerVerb> AnswerVerbs();

// Adds it with JOB and all options. `verb` must live as long as `app`.
void AddAnswerVerb(CLI::App& app, const AnswerVerb& verb, int* exit_code);

}  // namespace lull
