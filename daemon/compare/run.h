// One run of a comparison, as the report engine answered about it: first as a whole,
// then each of its processes in the time of the steps that are compared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/compare/line_text.h"
#include "query.pb.h"

namespace lull::compare {

// Counts of syncs are asked for in so many pieces of the time: what is there in some of
// them alone is not done in every step.
inline constexpr size_t kPieces = 4;

struct Step {
  uint64_t number = 0;
  uint64_t start_ns = 0;  // after the job's start
  uint64_t duration_ns = 0;
  bool traced = false;
};

// The steps of one process that are compared, in the order of time.
struct ProcessSteps {
  uint32_t pid = 0;
  int32_t rank = -1;
  std::vector<Step> steps;
  uint64_t dropped = 0;   // steps, most of them at the beginning
  uint64_t left_out = 0;  // of these, steady ones that the other runs do not have
  // False: the process did not settle in the first half of its steps. These are the
  // others then, good for counts and not for times.
  bool steady = false;

  // A piece begins with its first step and ends with the next piece. The end of the
  // last is that of its last step.
  size_t FirstStepOf(size_t piece) const { return piece * steps.size() / kPieces; }
  size_t StepsOf(size_t piece) const {
    return FirstStepOf(piece + 1) - FirstStepOf(piece);
  }
  uint64_t BeginOf(size_t piece) const {
    return piece < kPieces ? steps[FirstStepOf(piece)].start_ns
                           : steps.back().start_ns + steps.back().duration_ns;
  }
};

// What was asked about a process, all of it in the time of its steps.
struct ProcessReplies {
  v1::ReportReply all;  // an overview, with host samples as its first detail
  std::array<v1::ReportReply, kPieces> pieces;  // syncs, with the text of their lines
};

struct Run {
  v1::ReportReply whole;  // an overview, with all steps as its first detail
  std::vector<ProcessSteps> processes;  // of ChooseSteps(), by rank and pid
  std::vector<ProcessReplies> replies;  // by process
  size_t processes_left_out = 0;        // they have steady steps, too
  // Files of the program that its stacks name, and the lines of its sync points. Of a
  // run that is kept in a file; else both are known from the answers themselves.
  std::set<std::string> files = {};
  LineTexts lines = {};
};
using Runs = std::vector<Run>;

// Questions about runs, in this order: whole, then for each process all and its pieces.
v1::ReportRequest RequestForWhole(const std::string& job);
v1::ReportRequest RequestForAll(const Run& run, const ProcessSteps& process);
v1::ReportRequest RequestForPiece(const Run& run, const ProcessSteps& process,
                                  size_t piece);

// `files`, and those of the stacks of its sync points.
std::set<std::string> FilesOf(const Run& run);
// `lines`, and those of its sync points of which the source text was kept.
LineTexts LinesOf(const Run& run);

// "resnet (3f9a1c20)"
std::string NameOf(const v1::Job& job);

// What hooks record also in steps in which they rest, to hold the overhead budget
// (preload/steps/control_step.h): calls for device memory. Of tensors nothing is known.
bool IsRecordedInAllSteps(absl::string_view allocator);

}  // namespace lull::compare
