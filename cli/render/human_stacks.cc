#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/hot.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/memory_words.h"
#include "daemon/words/sample_words.h"
#include "daemon/words/step_words.h"

namespace lull {
namespace {

constexpr size_t kMostPids = 8;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kOld = 5 * kSecond;

// "ranks 0 to 6, 9" of sorted ranks; "" of none.
std::string RanksOf(const v1::ThreadStack& stack) {
  std::vector<int32_t> ranks;
  for (const v1::StackThread& thread : stack.threads()) {
    if (thread.rank() >= 0 && (ranks.empty() || ranks.back() != thread.rank())) {
      ranks.push_back(thread.rank());
    }
  }
  std::vector<std::string> parts;
  for (size_t first = 0, past = 0; first < ranks.size(); first = past) {
    past = first + 1;
    while (past < ranks.size() && ranks[past] == ranks[past - 1] + 1) ++past;
    const size_t count = past - first;
    if (count < 3) past = first + 1;
    parts.push_back(count < 3 ? absl::StrCat(ranks[first])
                              : absl::StrCat(ranks[first], " to ", ranks[past - 1]));
  }
  if (parts.empty()) return "";
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(parts, ", "));
}

std::string PidsOf(const v1::ThreadStack& stack) {
  std::vector<uint32_t> pids;
  for (const v1::StackThread& thread : stack.threads()) {
    if (thread.rank() < 0) pids.push_back(thread.pid());
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  if (pids.empty()) return "";
  const size_t shown = std::min(pids.size(), kMostPids);
  return absl::StrCat(
      pids.size() == 1 ? "pid " : "pids ",
      absl::StrJoin(pids.begin(), pids.begin() + static_cast<ptrdiff_t>(shown), ", "),
      shown < pids.size() ? ", ..." : "");
}

// "blocked", or "5 blocked, 2 running".
std::string StatesOf(const v1::ThreadStack& stack) {
  std::map<v1::HostSampleState, int> states;
  for (const v1::StackThread& thread : stack.threads()) ++states[thread.state()];
  std::vector<std::string> parts;
  for (const auto& [state, count] : states) {
    const std::string word = state == v1::HOST_SAMPLE_STATE_READY
                                 ? "waiting for a processor"
                                 : KeyOf(state, "unknown");
    parts.push_back(states.size() == 1 ? word : absl::StrCat(count, " ", word));
  }
  return absl::StrJoin(parts, ", ");
}

std::string ThreadsLine(const v1::ThreadStack& stack) {
  uint64_t same_for_ns = UINT64_MAX;
  uint64_t age_ns = 0;
  for (const v1::StackThread& thread : stack.threads()) {
    same_for_ns = std::min<uint64_t>(same_for_ns, thread.same_for_ns());
    age_ns = std::max<uint64_t>(age_ns, thread.age_ns());
  }
  std::string text = Counted(static_cast<uint64_t>(stack.threads_size()),
                             absl::StrCat(RoleKey(stack.role()), " thread"));
  for (const std::string& part : {RanksOf(stack), PidsOf(stack)}) {
    if (!part.empty()) absl::StrAppend(&text, ", ", part);
  }
  // "ranks 0, 1; 1 running, 2 blocked": the numbers are of threads.
  const std::string states = StatesOf(stack);
  absl::StrAppend(&text, absl::StrContains(states, ',') ? "; " : ", ", states);
  if (same_for_ns >= kSecond) {
    absl::StrAppend(&text, ", there for ", FormatDuration(same_for_ns), " or longer");
  }
  if (age_ns >= 2 * kSecond) {
    absl::StrAppend(&text, ", last seen ", FormatDuration(age_ns), " before");
  }
  return text;
}

// Of a job that hangs, or hung until it was ended. Of earlier times not all steps are
// kept.
std::string NoStepLine(const v1::ReportReply& reply) {
  const v1::NewestStacks& stacks = reply.stacks();
  if (stacks.earlier()) return "";
  if (!IsLongWithoutAStep(stacks.since_step_ns(), stacks.step_ns())) return "";
  // What comes after the last step is no news where all went well.
  if (reply.job().ended() && reply.job().exit_status_known() &&
      reply.job().exit_status() == 0) {
    return "";
  }
  std::string words = NoStepWords(stacks.since_step_ns(), stacks.step_ns());
  words[0] = 'N';
  return absl::StrCat(words, ".\n");
}

std::string StackText(const v1::ThreadStack& stack) {
  std::string text = absl::StrCat("\n", Wrapped(ThreadsLine(stack), 0));
  if (stack.stack().empty()) {
    return absl::StrCat(text, "  no Python code, or it could not be read\n");
  }
  if (stack.cut()) absl::StrAppend(&text, "  (called from here, not known what)\n");
  for (const v1::Frame& frame : stack.stack()) {
    absl::StrAppend(&text, "  ", FormatFrame(frame), "\n");
  }
  return text;
}

// "are", or when they were there.
std::string When(const v1::ReportReply& reply) {
  const v1::NewestStacks& stacks = reply.stacks();
  if (stacks.earlier()) {
    return absl::StrCat("were ", FormatDuration(stacks.at_ns()),
                        " after the job's start");
  }
  if (reply.job().ended()) return "were at last";
  if (stacks.behind_ns() < kOld) return "are";
  return absl::StrCat("were ", FormatDuration(stacks.behind_ns()),
                      " ago (nothing newer has come)");
}

}  // namespace

std::string StacksText(const v1::ReportReply& reply, v1::GroupBy) {
  const v1::NewestStacks& stacks = reply.stacks();
  std::string text;
  for (const v1::ThreadStack& stack : stacks.stacks()) {
    absl::StrAppend(&text, StackText(stack));
  }
  return Answer(reply,
                Wrapped(absl::StrCat("Where the threads of ",
                                     Counted(stacks.processes(), "process"), " ",
                                     When(reply), ", by the newest look at each in ",
                                     FormatDuration(stacks.window_ns()),
                                     "; the innermost call comes first"),
                        0),
                absl::StrCat(NoStepLine(reply), text));
}

std::string FoldedThreads(const v1::ReportReply& reply) {
  std::string text;
  for (const v1::ThreadStack& stack : reply.stacks().stacks()) {
    if (stack.stack().empty()) continue;
    for (auto frame = stack.stack().rbegin(); frame != stack.stack().rend(); ++frame) {
      absl::StrAppend(&text, frame == stack.stack().rbegin() ? "" : ";",
                      FoldedFrame(*frame));
    }
    absl::StrAppend(&text, stack.cut() ? ";[cut]" : "", " ", stack.threads_size(),
                    "\n");
  }
  return text;
}

}  // namespace lull
