// What the verbs that ask about a job have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/commands/collector_options.h"
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
  std::string since;
  std::string until;
};

// "90s", "2m", "1.5h", "250ms" or "90" (seconds), in nanoseconds.
absl::StatusOr<uint64_t> ParseTime(absl::string_view text);

// INVALID_ARGUMENT names the option that is wrong.
absl::StatusOr<v1::ReportRequest> MakeRequest(const QueryOptions& options);

// Adds `name` with JOB and all options, and runs `answer` for it: the text to
// print, human or JSON as options.json says.
struct QueryVerb {
  const char* name;
  const char* description;
  const char* example;
  std::function<absl::StatusOr<std::string>(CollectorClient&, const v1::ReportRequest&,
                                            const QueryOptions&)>
      answer;
};
void AddQueryVerb(CLI::App& app, const QueryVerb& verb, int* exit_code);

}  // namespace lull
