// Single lines that the reports and the summary share.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull {

// "resnet (3f9a1c20): torchrun train.py, 42.3 s, exit status 0", and how much of that
// was recorded where it was not all.
std::string JobLine(const v1::Job& job);

// Whether the answer is complete, and if not, what is missing and why.
std::string LossesLine(const v1::Job& job, const v1::Losses& losses);

// Which phase is shown, where it is not all of the job; "" otherwise.
std::string PhaseLine(const v1::ReportReply& reply);

// Why there are no findings.
std::string NoAdvice(const v1::ReportReply& reply);

// What GPU tracing cost on the wall clock, and recording where the job has control
// steps; "" where neither can be told.
std::string StepCostLine(const v1::Overhead& overhead);

// What measuring cost the job in our own code, against its budget.
std::string OverheadLine(const v1::Overhead& overhead);

// What is known of both, in one line.
std::string ShortCostLine(const v1::Overhead& overhead);

// Both, each line ended.
std::string CostLines(const v1::Overhead& overhead);

// Words on lines of at most 100 columns, or as the process has set it, every line
// indented and ended.
std::string Wrapped(absl::string_view text, size_t indent);

// For a terminal that is narrower than 100 columns; 0 and wider ones change nothing.
// Call it once, before anything is rendered.
void SetTerminalColumns(size_t columns);

}  // namespace lull
