// JSON Schemas of what verbs print with --json. tests/cli/schema_unittest.cc holds them
// against answers of every kind: nothing is printed that they do not allow, and they
// allow nothing that is never printed.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/render/json.h"

namespace lull {

// The verbs that print JSON, as --help lists them.
std::vector<std::string> VerbsWithSchema();

// Of one of these verbs; null for another word.
Json AnswerSchema(absl::string_view verb);

namespace schema {

// Of the verbs that show no job; those that do are in json.h.
Json Diff();
Json Check();
Json Ps();
Json Arm();
Json Marks();
Json Doctor();

}  // namespace schema
}  // namespace lull
