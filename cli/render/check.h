// The verdict of a gate, for people, programs and continuous integration.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "cli/render/json.h"
#include "daemon/check/judge.h"

namespace lull {

std::string CheckText(const check::Verdict& verdict);
Json CheckJson(const check::Verdict& verdict);

// "passed", "failed", "cannot_judge"
const char* OutcomeKey(check::Outcome outcome);
// Those of `lull check`: 0, 1, 3.
int ExitStatusOf(check::Outcome outcome);

// One sentence about a rule: what was measured, or why nothing can be said.
std::string RuleSentence(const check::Judgement& judgement);
// "cudaMemcpyAsync at train.py:47 step: 2 (new)"
std::string PartSentence(const check::Rule& rule, const check::Part& part);

// Files of other tools. Paths below `root` ("" none) are written without it, as those
// who show them beside the code want it.
std::string CheckJunit(const check::Verdict& verdict);
std::string CheckSarif(const check::Verdict& verdict, absl::string_view root);
// Workflow commands of GitHub, a line each; of errors it shows ten.
std::string CheckAnnotations(const check::Verdict& verdict, absl::string_view root);

}  // namespace lull
