#include "cli/render/lines.h"

#include <string.h>

#include <algorithm>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cli/render/arming.h"
#include "cli/render/command_name.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"
#include "daemon/words/step_words.h"
#include "google/protobuf/descriptor.h"

namespace lull {
namespace {

constexpr size_t kMostColumns = 100;
constexpr size_t kLeastColumns = 40;

size_t text_columns = kMostColumns;

// A shell and `lull run` both turn "ended by signal n" into 128 + n. A program may also
// exit with such a number by itself, so the number is shown beside the name.
std::string ExitStatusText(int status) {
  std::string text = absl::StrCat("exit status ", status);
  const char* name = status > 128 ? sigabbrev_np(status - 128) : nullptr;
  if (name != nullptr) absl::StrAppend(&text, " (SIG", name, ")");
  return text;
}

std::string SelfWords(const v1::Overhead& overhead) {
  std::string words =
      absl::StrFormat("%s in the job, %.2f %% of its busiest process (budget %.4g %%)",
                      FormatDuration(overhead.self_ns()), overhead.percent(),
                      overhead.budget_percent());
  // A relay tells it when it ends.
  if (overhead.relay_cpu_ns() > 0) {
    absl::StrAppend(&words, "; relay ", FormatDuration(overhead.relay_cpu_ns()),
                    " CPU");
  }
  return words;
}

// Those fields of `losses` that are not 0 and have words of their own.
void ForEachTold(const v1::Losses& losses,
                 absl::FunctionRef<void(const v1::Told&, uint64_t count)> tell) {
  const auto& reflection = *losses.GetReflection();
  const auto& fields = *losses.GetDescriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *fields.field(i);
    if (!field.options().HasExtension(v1::told)) continue;
    const uint64_t count = field.cpp_type() == field.CPPTYPE_UINT32
                               ? reflection.GetUInt32(losses, &field)
                               : reflection.GetUInt64(losses, &field);
    if (count > 0) tell(field.options().GetExtension(v1::told), count);
  }
}

}  // namespace

std::string JobLine(const v1::Job& job) {
  std::string line;
  if (!job.name().empty()) {
    absl::StrAppend(&line, Shortened(job.name(), 60), " (", ShortId(job.id()), ")");
  } else {
    absl::StrAppend(&line, "Job ", ShortId(job.id()));
  }
  absl::StrAppend(&line, ": ", ShortCommand(job.command(), 60), ", ",
                  FormatDuration(job.duration_ns()));
  if (job.end_unseen()) {
    absl::StrAppend(&line, ", end not seen");
  } else if (!job.ended()) {
    absl::StrAppend(&line, job.asleep()     ? ", asleep"
                           : job.attached() ? ", still watched"
                                            : ", still running");
    if (IsLongWithoutAStep(job)) {
      absl::StrAppend(&line, " (", NoStepWords(job.since_step_ns(), job.step_ns()),
                      ")");
    }
  } else if (job.has_imported()) {
    absl::StrAppend(&line, ", imported");
  } else if (job.attached()) {
    absl::StrAppend(&line, ", watched by lull attach");
  } else if (job.exit_status_known()) {
    absl::StrAppend(&line, ", ", ExitStatusText(job.exit_status()));
  } else {
    absl::StrAppend(&line, ", exit status unknown");
  }
  if (std::string recorded = RecordedText(job); !recorded.empty()) {
    absl::StrAppend(&line, "; ", recorded);
  }
  if (AreStepsSampled(job)) {
    absl::StrAppend(&line, "; steps sampled, totals are of the recorded ones");
  }
  if (!job.parts().empty()) {
    absl::StrAppend(&line, "; one of ", FormatCount(job.parts_size()), " parts, on ",
                    Shortened(job.host(), 60));
  }
  return line;
}

std::string LossesLine(const v1::Job& job, const v1::Losses& losses) {
  std::vector<std::string> parts;
  if (losses.events_lost() > 0) {
    uint64_t all =
        losses.events_committed() + losses.lost_ring_full() + losses.lost_no_ring();
    std::vector<std::string> why;
    auto add = [&why](uint64_t count, absl::string_view reason) {
      if (count > 0) why.push_back(absl::StrCat(FormatCount(count), " ", reason));
    };
    add(losses.lost_ring_full(), "ring full");
    add(losses.lost_no_ring(), "from threads without a ring");
    add(losses.lost_relay(), "dropped by the relay");
    parts.push_back(absl::StrCat("LOST ", FormatCount(losses.events_lost()), " of ",
                                 FormatCount(all), " events (",
                                 absl::StrJoin(why, ", "), ")"));
  } else if (losses.events_stored() < losses.events_committed()) {
    parts.push_back(absl::StrCat("Stored so far: ", FormatCount(losses.events_stored()),
                                 " of ", FormatCount(losses.events_committed()),
                                 " events"));
  } else {
    bool complete =
        !job.end_unseen() && job.batches_set_aside() == 0 && job.unreachable_ns() == 0;
    ForEachTold(losses, [&](const v1::Told& told, uint64_t) {
      if (told.incomplete()) complete = false;
    });
    parts.push_back(absl::StrCat(!complete     ? "Stored: "
                                 : job.ended() ? "Nothing lost: "
                                               : "Nothing lost so far: ",
                                 FormatCount(losses.events_stored()), " events"));
  }
  if (job.end_unseen()) {
    parts.push_back(absl::StrCat("the end of the job was not seen: complete until ",
                                 FormatDuration(job.complete_until_ns()),
                                 " after its start"));
  }
  if (job.batches_set_aside() > 0) {
    parts.push_back(absl::StrCat(
        FormatCount(job.batches_set_aside()),
        job.batches_set_aside() == 1 ? " batch was" : " batches were",
        " refused by the collector; kept on the job's host, in the folder `refused` "
        "beside the spools"));
  }
  if (job.unreachable_ns() > 0) {
    parts.push_back(absl::StrCat(
        "for ", FormatDuration(job.unreachable_ns()),
        " no new process could be recorded, because the runtime folder was gone"));
  }
  ForEachTold(losses, [&](const v1::Told& told, uint64_t count) {
    parts.push_back(absl::StrReplaceAll(told.words(), {{"#", FormatCount(count)}}));
  });
  // Without a loss for want of a ring it made no difference.
  if (losses.processes_threads_unseen() > 0 && losses.lost_no_ring() > 0) {
    parts.push_back(
        "without /proc lull cannot see which threads are gone, so their rings were not "
        "given to others");
  }
  if (losses.modules_unread() > 0) {
    parts.push_back(
        absl::StrCat("functions without names, for reading the symbols of their "
                     "libraries failed: in ",
                     FormatCount(losses.modules_unread()),
                     losses.modules_unread() == 1 ? " library" : " libraries"));
  }
  if (losses.thinning() > 0) {
    parts.push_back("stacks thinned to keep the overhead budget");
  }
  if (losses.thinned_launches() > 0) {
    parts.push_back(absl::StrCat(FormatCount(losses.thinned_launches()),
                                 " launches not recorded, for the same reason"));
  }
  if (losses.scopes_thinned() > 0) {
    parts.push_back(absl::StrCat(FormatCount(losses.scopes_thinned()),
                                 " regions not recorded, for the same reason"));
  }
  if (losses.short_waits() > 0) {
    parts.push_back(absl::StrCat(FormatCount(losses.short_waits()),
                                 " waits under the threshold (",
                                 FormatDuration(losses.short_waits_ns()), " in all)"));
  }
  return absl::StrCat(absl::StrJoin(parts, "; "), ".");
}

std::string PhaseLine(const v1::ReportReply& reply) {
  std::string setup = FormatDuration(reply.setup_ns());
  switch (reply.phase()) {
    case v1::PHASE_STEADY:
      return absl::StrCat("Steady state: without the first ", setup,
                          " of set-up and first steps (--phase setup, --phase all)");
    case v1::PHASE_SETUP:
      return absl::StrCat("Set-up: the first ", setup, ", until after the first steps");
    default:
      return "";
  }
}

std::string NoAdvice(const v1::ReportReply& reply) {
  return reply.has_advice()
             ? "nothing stands out in what was measured"
             : "the collector is older than this lull and gives no advice";
}

namespace {

std::string EstimateWords(const v1::Estimate& estimate, absl::string_view of) {
  return absl::StrFormat("%+.2f %% on %s (%+.2f to %+.2f %%)", estimate.percent(), of,
                         estimate.low_percent(), estimate.high_percent());
}

std::string RankWords(const v1::StepCost& cost) {
  return cost.rank() >= 0 ? absl::StrFormat(", rank %d", cost.rank()) : "";
}

std::string SampledStepsLine(const v1::StepCost& cost) {
  const uint64_t recorded = cost.recorded_steps();
  const uint64_t from = cost.sampled_from_step();
  std::string line = absl::StrFormat(
      "Recorded to hold the budget%s: %s of %s steps",
      from == 0 ? "" : absl::StrCat(", from step ", FormatCount(from), " on"),
      FormatCount(recorded), FormatCount(recorded + cost.rested_steps()));
  if (!cost.has_recorded_longer() || !cost.has_recording_paid()) {
    return absl::StrCat(line, RankWords(cost),
                        ". What that costs on the wall clock is not known: too few of "
                        "either kind could be compared.");
  }
  return absl::StrCat(line, ". Cost of recording on the wall clock: ",
                      EstimateWords(cost.recording_paid(), "the job"), ", ",
                      EstimateWords(cost.recorded_longer(), "a recorded step"),
                      RankWords(cost), ".");
}

std::string RecordingCostLine(const v1::StepCost& cost) {
  if (cost.sampled()) return SampledStepsLine(cost);
  if (cost.control_one_in() == 0) return "";
  if (!cost.has_recorded_longer()) {
    return absl::StrFormat(
        "Cost of recording on the wall clock: not known, as %d control steps could be "
        "compared with the steps beside them. Six are needed, one in %d was asked for.",
        cost.control_steps(), cost.control_one_in());
  }
  return absl::StrFormat(
      "Cost of recording on the wall clock: %s: %d control steps, in which hooks "
      "rested, against the steps beside them%s.",
      EstimateWords(cost.recorded_longer(), "a step"), cost.control_steps(),
      RankWords(cost));
}

std::string WindowCostLine(const v1::StepCost& cost) {
  if (!cost.has_traced_longer() || !cost.has_paid()) return "";
  std::string line = absl::StrFormat(
      "Cost on the wall clock: %s, %s: %d windows of tracing against the steps beside "
      "them%s.",
      EstimateWords(cost.paid(), "the job"),
      EstimateWords(cost.traced_longer(), "a traced step"), cost.windows(),
      RankWords(cost));
  // One that may have other reasons is told where it is hardly chance.
  if (cost.between_longer().low_percent() > 0) {
    absl::StrAppend(&line, " Not in it: ",
                    EstimateWords(cost.between_longer(), "steps between windows"),
                    " against those before the first, which may have other reasons. If "
                    "windows left it behind, runs with `--gpu host` do not have it.");
  }
  return line;
}

}  // namespace

std::string StepCostLine(const v1::Overhead& overhead) {
  const v1::StepCost& cost = overhead.step_cost();
  std::vector<std::string> lines = {RecordingCostLine(cost), WindowCostLine(cost)};
  std::erase(lines, "");
  return absl::StrJoin(lines, " ");
}

std::string OverheadLine(const v1::Overhead& overhead) {
  return absl::StrCat("Cost of measuring: ", SelfWords(overhead), ".");
}

std::string ShortCostLine(const v1::Overhead& overhead) {
  if (!overhead.step_cost().has_paid()) return OverheadLine(overhead);
  const v1::Estimate& paid = overhead.step_cost().paid();
  return absl::StrFormat(
      "Cost of measuring: %+.2f %% on the wall clock (%+.2f to %+.2f %%); %s.",
      paid.percent(), paid.low_percent(), paid.high_percent(), SelfWords(overhead));
}

std::string CostLines(const v1::Overhead& overhead) {
  const std::string on_the_clock = StepCostLine(overhead);
  return absl::StrCat(on_the_clock.empty() ? "" : Wrapped(on_the_clock, 0),
                      OverheadLine(overhead), "\n");
}

void SetTerminalColumns(size_t columns) {
  if (columns > 0) text_columns = std::clamp(columns, kLeastColumns, kMostColumns);
}

std::string Wrapped(absl::string_view text, size_t indent) {
  std::string margin(indent, ' ');
  std::string result;
  std::string line;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line.empty() && indent + line.size() + 1 + word.size() > text_columns) {
      absl::StrAppend(&result, margin, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return absl::StrCat(result, margin, line, "\n");
}

}  // namespace lull
