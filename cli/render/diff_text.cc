#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/render/diff.h"
#include "cli/render/gpu_tables.h"
#include "cli/render/lines.h"
#include "cli/render/table.h"
#include "daemon/words/cause_words.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

using compare::Comparison;
using compare::Quantity;
using compare::RunFacts;
using compare::StepTime;
using compare::SyncChange;
using compare::SyncRate;

constexpr size_t kMostNames = 3;
// Kernels of one template differ in its arguments alone.
constexpr size_t kKernelWidth = 90;
// Differences below this share of a step are of no use to a reader.
constexpr double kLeastShare = 0.0005;

std::string Milliseconds(double ms) {
  return FormatDuration(static_cast<uint64_t>(std::llround(std::abs(ms) * 1e6)));
}

std::string Signed(double ms) {
  return absl::StrCat(ms < 0 ? "-" : "+", Milliseconds(ms));
}

// "-6.13 ms ± 210 us"
std::string DifferenceOf(const Quantity& quantity) {
  std::string text = Signed(quantity.b - quantity.a);
  if (quantity.low && quantity.high) {
    absl::StrAppend(&text, " ± ", Milliseconds((*quantity.high - *quantity.low) / 2));
  }
  return text;
}

std::string Rate(double per_step) { return Digits(per_step, 3); }

std::string NamesOf(const std::vector<RunFacts>& runs) {
  std::vector<std::string> names;
  for (const RunFacts& run : runs) {
    if (names.size() == kMostNames) {
      names.push_back(absl::StrCat(runs.size() - names.size(), " more"));
      break;
    }
    names.push_back(run.job.name().empty()
                        ? ShortId(run.job.id())
                        : absl::StrCat(Shortened(run.job.name(), 30), " (",
                                       ShortId(run.job.id()), ")"));
  }
  return absl::StrJoin(names, ", ");
}

std::string StepsOf(const std::vector<RunFacts>& runs) {
  const auto [least, most] = std::minmax_element(
      runs.begin(), runs.end(),
      [](const RunFacts& a, const RunFacts& b) { return a.steps < b.steps; });
  return least->steps == most->steps ? FormatCount(most->steps)
                                     : absl::StrCat(FormatCount(least->steps), " to ",
                                                    FormatCount(most->steps));
}

std::string SidesTable(const Comparison& comparison) {
  Table table({"", ">runs", ">steps", ">median step", ">mean step", "jobs"});
  auto add = [&](const char* side, const std::vector<RunFacts>& runs, double median_ms,
                 double mean_ms) {
    table.AddRow({side, absl::StrCat(runs.size()), StepsOf(runs),
                  comparison.step ? Milliseconds(median_ms) : "-",
                  comparison.step ? Milliseconds(mean_ms) : "-", NamesOf(runs)});
  };
  const StepTime step = comparison.step.value_or(StepTime());
  add("A", comparison.a, step.a_ms, step.mean_a_ms);
  add("B", comparison.b, step.b_ms, step.mean_b_ms);
  return absl::StrCat("\nSteps that are compared, of each run",
                      comparison.traced_steps ? " (traced ones)" : "", "\n",
                      table.Text());
}

std::string StepLines(const StepTime& step) {
  if (!step.change) return "";
  std::string text = absl::StrFormat(
      "B's median step against A's: %+.2f %% (%+.2f to %+.2f %%%s).",
      step.change->percent, step.change->low_percent, step.change->high_percent,
      step.known ? ", 95 % interval" : ", of these very runs");
  if (step.known && step.spread_percent) {
    absl::StrAppend(&text, " Runs of one program differ by ",
                    Digits(*step.spread_percent, 2),
                    " %. So many runs show a change of ",
                    Digits(step.change->detectable_percent, 2), " %");
    if (step.runs_needed) {
      absl::StrAppend(&text, "; one of ", Digits(step.asked_percent, 3),
                      " % takes about ", *step.runs_needed, " a side");
    }
    absl::StrAppend(&text, ".");
  }
  return Wrapped(text, 0);
}

std::string Where(const SyncChange& change) {
  if (change.a.calls == 0) return FormatSite(change.b.site);
  if (change.b.calls == 0) return FormatSite(change.a.site);
  std::string from = FormatSite(change.a.site), to = FormatSite(change.b.site);
  return from == to ? to : absl::StrCat(from, " → ", to);
}

std::string SyncsTable(const compare::SyncChanges& syncs) {
  Table table({"", ">calls A", ">calls B", ">blocked A", ">blocked B", ">wasted A",
               ">wasted B", "call", "where"});
  auto wasted = [](const SyncRate& rate) {
    return rate.wasted_ms_per_step ? Milliseconds(*rate.wasted_ms_per_step) : "-";
  };
  auto blocked = [](const SyncRate& rate) {
    return rate.calls > 0 ? Milliseconds(rate.blocked_ms_per_step) : "-";
  };
  auto add = [&](const char* what, const std::vector<SyncChange>& changes) {
    for (const SyncChange& change : changes) {
      const SyncRate &a = change.a, &b = change.b;
      table.AddRow({what, Rate(a.calls_per_step), Rate(b.calls_per_step), blocked(a),
                    blocked(b), wasted(a), wasted(b),
                    Shortened(a.calls > 0 ? a.api : b.api, 30), Where(change)});
    }
  };
  add("gone", syncs.gone);
  add("new", syncs.came);
  add("changed", syncs.changed);
  add("moved", syncs.moved);
  add("rare", syncs.rare);
  std::vector<SyncChange> edited;
  std::copy_if(syncs.same.begin(), syncs.same.end(), std::back_inserter(edited),
               [](const SyncChange& change) { return change.edited; });
  add("edited", edited);
  std::string text = "\nSync points, per step\n";
  const bool any = syncs.gone.size() + syncs.came.size() + syncs.changed.size() +
                       syncs.moved.size() + syncs.rare.size() + edited.size() >
                   0;
  if (any) absl::StrAppend(&text, table.Text());
  const size_t same = syncs.same.size() - edited.size();
  if (same > 0) {
    absl::StrAppend(&text, "  ", FormatCount(same), any ? " more" : "",
                    same == 1 ? " sync point is" : " sync points are", " as before\n");
  } else if (!any) {
    absl::StrAppend(&text, "  none on either side\n");
  }
  if (!syncs.rare.empty()) {
    absl::StrAppend(&text,
                    "  rare: seen on one side, in too few steps to say that the other "
                    "does not do it\n");
  }
  if (!edited.empty()) {
    absl::StrAppend(
        &text,
        "  edited: as many calls, of a line that reads otherwise: taken for "
        "the same one\n");
  }
  return text;
}

// Rows of any kind by their times; those that differ by next to nothing are left out.
template <typename Row, typename Name>
std::string TimesTable(const char* title, const char* column,
                       const std::vector<Row>& rows, double step_ms, size_t top,
                       Name name) {
  Table table({">A", ">B", ">difference", column});
  size_t shown = 0, more = 0;
  for (const Row& row : rows) {
    if (std::abs(row.ms.b - row.ms.a) < kLeastShare * step_ms) continue;
    if (top > 0 && shown == top) {
      ++more;
      continue;
    }
    ++shown;
    table.AddRow({Milliseconds(row.ms.a), Milliseconds(row.ms.b), DifferenceOf(row.ms),
                  name(row)});
  }
  if (shown == 0) return "";
  return absl::StrCat("\n", title, "\n", table.Text(),
                      more > 0 ? absl::StrCat("  ", more, " more (--top 0)\n") : "");
}

std::string MemoryTable(const std::vector<compare::MemoryChange>& rows) {
  Table table({">peak A", ">peak B", ">reserved A", ">reserved B", "allocator"});
  bool any = false;
  auto bytes = [](double value) { return FormatBytes(std::llround(value)); };
  for (const compare::MemoryChange& row : rows) {
    const Quantity &peak = row.peak_bytes, &reserved = row.reserved_bytes;
    const double most = std::max({peak.a, peak.b, reserved.a, reserved.b, 1.0});
    if (std::abs(peak.b - peak.a) + std::abs(reserved.b - reserved.a) < 0.01 * most) {
      continue;
    }
    any = true;
    const bool known = reserved.a > 0 || reserved.b > 0;
    table.AddRow({bytes(peak.a), bytes(peak.b), known ? bytes(reserved.a) : "-",
                  known ? bytes(reserved.b) : "-", Shortened(row.allocator, 30)});
  }
  return any ? absl::StrCat("\nMemory of the process that has most, whole run\n",
                            table.Text())
             : "";
}

std::string RatesText(const Comparison& comparison, size_t top) {
  const double step_ms = std::max(comparison.step ? comparison.step->a_ms : 0,
                                  comparison.step ? comparison.step->b_ms : 0);
  return absl::StrCat(
      TimesTable("Idle time of the GPU by cause, per step", "cause", comparison.causes,
                 step_ms, top,
                 [](const compare::CauseChange& row) { return CauseName(row.cause); }),
      TimesTable("The host waited, per step", "for", comparison.host, step_ms, top,
                 [](const compare::HostChange& row) { return Printable(row.what); }),
      TimesTable("Kernels, per step", "kernel", comparison.kernels, step_ms, top,
                 [](const compare::KernelChange& row) {
                   return ShortKernel(row.name, kKernelWidth);
                 }),
      TimesTable("Own time of functions on main threads, per step, by samples",
                 "function", comparison.functions, step_ms, top,
                 [](const compare::FunctionChange& row) {
                   return FormatSite(row.site, v1::GROUP_BY_FUNCTION);
                 }));
}

}  // namespace

std::string DiffText(const Comparison& comparison, size_t top) {
  std::string text = Wrapped(DiffHeadline(comparison), 0);
  absl::StrAppend(&text, SidesTable(comparison));
  const bool judged = comparison.reasons.empty();
  if (judged && comparison.step) {
    absl::StrAppend(&text, "\n", StepLines(*comparison.step));
  }
  if (comparison.step) {
    absl::StrAppend(&text, SyncsTable(comparison.syncs), RatesText(comparison, top));
  }
  absl::StrAppend(&text, MemoryTable(comparison.memory));
  for (size_t i = 0; i < comparison.warnings.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "\n" : "",
                    Wrapped(absl::StrCat("Note: ", comparison.warnings[i], "."), 0));
  }
  return text;
}

}  // namespace lull
