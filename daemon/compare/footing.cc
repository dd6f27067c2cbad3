#include "daemon/compare/footing.h"

#include <algorithm>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"
#include "google/protobuf/descriptor.h"

namespace lull::compare {
namespace {

// Whether a field of Losses says that not all of the job was recorded.
bool AnyIncomplete(const v1::Losses& losses) {
  const auto& reflection = *losses.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(losses, &fields);  // those that are not 0
  return std::any_of(fields.begin(), fields.end(), [](const auto* field) {
    return field->options().HasExtension(v1::told) &&
           field->options().GetExtension(v1::told).incomplete();
  });
}

std::string GpusOf(const v1::ReportReply& reply) {
  std::set<std::string> names;
  for (const v1::DeviceRow& device : reply.devices()) {
    names.insert(device.name().empty() ? "unnamed" : Printable(device.name()));
  }
  return names.empty() ? "none seen" : absl::StrJoin(names, ", ");
}

std::string StepSource(const v1::ReportReply& reply) {
  return reply.details().empty() ? "" : reply.details(0).steps().source();
}

// "A: x; B: y" if the two sides differ, or "A: x and y" if one does in itself.
void Differ(const Runs& a, const Runs& b, absl::string_view what,
            absl::FunctionRef<std::string(const Run&)> get,
            std::vector<std::string>* out) {
  std::set<std::string> of_a, of_b;
  for (const Run& run : a) of_a.insert(get(run));
  for (const Run& run : b) of_b.insert(get(run));
  if (of_a == of_b && of_a.size() == 1) return;
  out->push_back(absl::StrCat(what, " (A: ", absl::StrJoin(of_a, " and "),
                              "; B: ", absl::StrJoin(of_b, " and "), ")"));
}

// What a longer run does later is not in steps that a shorter one has, too.
void WarnOfLeftOut(const Run& run, const std::string& name, Footing* footing) {
  uint64_t left_out = 0, compared = 0;
  for (const ProcessSteps& process : run.processes) {
    left_out += process.left_out;
    compared += process.steps.size();
  }
  if (left_out <= compared) return;
  footing->warnings.push_back(
      absl::StrCat(FormatCount(left_out), " of ", FormatCount(left_out + compared),
                   " steady steps of ", name,
                   " are left out: other runs or ranks do not have them"));
}

void JudgeRun(const Run& run, Footing* footing) {
  const v1::Job& job = run.whole.job();
  const std::string name = NameOf(job);
  if (run.whole.losses().events_stored() == 0) {
    footing->reasons.push_back(absl::StrCat("nothing was recorded of ", name));
  } else if (run.processes.empty()) {
    footing->reasons.push_back(absl::StrCat(StepSource(run.whole).empty()
                                                ? "no steps were seen in "
                                                : "too few steps were seen in ",
                                            name));
  }
  if (std::string why = Incomplete(run.whole); !why.empty()) {
    footing->reasons.push_back(absl::StrCat(why, " of ", name));
  }
  if (!job.ended() && !job.end_unseen()) {
    footing->warnings.push_back(absl::StrCat(name, " is not over yet"));
  } else if (job.exit_status_known() && job.exit_status() != 0) {
    footing->warnings.push_back(
        absl::StrCat(name, " ended with exit status ", job.exit_status()));
  }
  WarnOfLeftOut(run, name, footing);
  if (run.whole.losses().thinning() > 1) {
    footing->warnings.push_back(absl::StrCat(
        "stacks of ", name, " were thinned: lines of native code may be unknown"));
  }
  if (AreStepsSampled(job)) {
    footing->warnings.push_back(absl::StrCat(
        "steps of ", name,
        " were sampled: what is rare may be missed, what goes on between "
        "steps counts for too much, peaks of memory are of recorded steps"));
  }
  const bool steady =
      std::all_of(run.processes.begin(), run.processes.end(),
                  [](const ProcessSteps& process) { return process.steady; });
  if (!steady) {
    footing->untimed.push_back(absl::StrCat(
        "times of ", name,
        " cannot be compared: its steps did not settle in the first half of the run"));
  }
  const uint64_t dropped = MissingRecords(run.whole.gpu());
  if (dropped > 0) {
    footing->warnings.push_back(absl::StrCat(FormatCount(dropped), " GPU records of ",
                                             name,
                                             " are missing: causes and kernels "
                                             "are not complete"));
  }
}

void WarnOfOrder(const Runs& a, const Runs& b, Footing* footing) {
  auto start = [](const Run& run) { return run.whole.job().start_realtime_ns(); };
  auto before = [&](const Runs& one, const Runs& other) {
    return std::all_of(one.begin(), one.end(), [&](const Run& run) {
      return std::all_of(other.begin(), other.end(),
                         [&](const Run& later) { return start(run) < start(later); });
    });
  };
  if (a.size() < 2 || b.size() < 2 || (!before(a, b) && !before(b, a))) return;
  footing->warnings.push_back(
      "all runs of one side were before those of the other: what changed on the "
      "machine "
      "meanwhile looks like a difference of the programs (run A B A B)");
}

}  // namespace

uint64_t MissingRecords(const v1::Gpu& gpu) {
  return gpu.cupti_dropped() + gpu.records_lost() + gpu.records_bad();
}

std::string Incomplete(const v1::ReportReply& reply) {
  const v1::Losses& losses = reply.losses();
  if (losses.events_lost() > 0) {
    return absl::StrCat(FormatCount(losses.events_lost()), " events were lost");
  }
  if (reply.job().batches_set_aside() > 0 || reply.job().unreachable_ns() > 0 ||
      AnyIncomplete(losses)) {
    return "not all was recorded";
  }
  if (losses.stacks_rejected() > 0) {
    return absl::StrCat(FormatCount(losses.stacks_rejected()), " stacks are missing");
  }
  if (reply.job().end_unseen()) return "the end was not seen";
  if (losses.events_stored() < losses.events_committed() && reply.job().ended()) {
    return "not all events are stored yet";
  }
  return "";
}

Footing FootingOf(const Runs& a, const Runs& b) {
  Footing footing;
  for (const Runs* side : {&a, &b}) {
    for (const Run& run : *side) JudgeRun(run, &footing);
  }
  Differ(
      a, b, "the GPU was recorded in other modes",
      [](const Run& run) { return KeyOf(run.whole.gpu().mode()); }, &footing.reasons);
  Differ(
      a, b, "the GPUs differ", [](const Run& run) { return GpusOf(run.whole); },
      &footing.reasons);
  Differ(
      a, b, "some are imported traces, others recorded by lull",
      [](const Run& run) {
        return run.whole.job().has_imported() ? run.whole.job().imported().format()
                                              : std::string("lull");
      },
      &footing.reasons);
  const bool all_have_steps = footing.reasons.empty();
  if (all_have_steps) {
    Differ(
        a, b, "another number of processes made steps",
        [](const Run& run) { return absl::StrCat(run.processes.size()); },
        &footing.reasons);
    Differ(
        a, b, "steps are told by other marks",
        [](const Run& run) { return StepSource(run.whole); }, &footing.reasons);
  }
  Differ(
      a, b, "the hosts differ",
      [](const Run& run) { return Printable(run.whole.job().host()); },
      &footing.warnings);
  WarnOfOrder(a, b, &footing);
  return footing;
}

}  // namespace lull::compare
