#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_tables.h"
#include "cli/render/human.h"
#include "cli/render/human_parts.h"
#include "cli/render/steps_facts.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

struct Part {
  const char* name;
  const char* title;  // of its column
  uint64_t (v1::StepRow::*ns)() const;
  bool of_device;  // known in traced steps alone
};

constexpr Part kParts[] = {
    {"kernels", "kernel", &v1::StepRow::kernel_ns, true},
    {"copies", "memcpy", &v1::StepRow::memcpy_ns, true},
    {"memsets", "memset", &v1::StepRow::memset_ns, true},
    {"communication", "comm", &v1::StepRow::communication_ns, true},
    {"CUDA calls", "runtime", &v1::StepRow::runtime_ns, false},
    {"waiting for data", "data", &v1::StepRow::data_ns, false},
    {"other waits, GC, allocations", "host", &v1::StepRow::host_ns, false},
    {"other", "other", &v1::StepRow::other_ns, false},
};

std::string Cell(const Part& part, const v1::StepRow& step, bool traced) {
  bool timed = step.duration_ns() != 0;  // the first one's start is not known
  if (!timed || (part.of_device && !traced)) return "-";
  return FormatDuration((step.*part.ns)());
}

std::string SourceWords(const std::string& source) {
  if (source == "optimizer") return "by optimizer steps";
  if (source == "nvtx") return "by NVTX ranges";
  if (source == "period") return "by the period of launches";
  return Shortened(source, 20);
}

std::string Medians(const v1::Steps& reply, bool traced) {
  Table table({">median", ">share", "part of a step"});
  const v1::StepRow& median = reply.median();
  for (const Part& part : kParts) {
    bool known = traced || !part.of_device;
    table.AddRow(
        {Cell(part, median, traced),
         known ? FormatShare(D((median.*part.ns)()), D(median.duration_ns())) : "-",
         part.name});
  }
  return table.Text();
}

// What the device made of the traced steps.
std::string DeviceLine(const v1::Steps& reply) {
  std::vector<std::string> parts = {
      absl::StrFormat("GPU utilisation %.3g %%", reply.gpu_utilization_percent())};
  auto estimated = [&parts](const char* what, double percent) {
    if (percent > 0) parts.push_back(absl::StrFormat("%s %.3g %%", what, percent));
  };
  estimated("est. SM efficiency", reply.sm_efficiency_percent());
  estimated("est. occupancy", reply.occupancy_percent());
  parts.push_back(absl::StrFormat("tensor cores %.3g %%", reply.tensor_core_percent()));
  return absl::StrCat("In traced steps: ", absl::StrJoin(parts, ", "), "\n");
}

// " ± 400 ms"; of few samples, which are not symmetric, " (55 ms to 601 ms)".
std::string IntervalOf(const v1::PhasePart& part) {
  const v1::SampledShare& share = part.share();
  auto time = [&](double percent) {
    return FormatDuration(
        static_cast<uint64_t>(D(part.time_ns()) * percent / share.percent()));
  };
  const double half = (share.high_percent() - share.low_percent()) / 2;
  if (half < share.percent()) return absl::StrCat(" ± ", time(half));
  return absl::StrCat(" (", time(share.low_percent()), " to ",
                      time(share.high_percent()), ")");
}

// "imports 3.5 s ± 0.4, first steps 1.0 s"
std::string PartsOf(const v1::Steps& reply, v1::Phase phase) {
  std::vector<std::string> parts;
  for (const v1::PhasePart& part : reply.phase_parts()) {
    if (part.phase() != phase) continue;
    parts.push_back(
        absl::StrCat(PhasePartWords(part.kind()), " ", FormatDuration(part.time_ns())));
    if (!part.has_share() || part.share().percent() <= 0) continue;
    absl::StrAppend(&parts.back(), IntervalOf(part));
  }
  return absl::StrJoin(parts, ", ");
}

}  // namespace

std::string PhasePartsText(const v1::Steps& reply) {
  if (reply.setup_ns() == 0) return "";
  const std::string setup = PartsOf(reply, v1::PHASE_SETUP);
  const std::string later = PartsOf(reply, v1::PHASE_STEADY);
  return Wrapped(
      absl::StrCat("Set-up ", FormatDuration(reply.setup_ns()),
                   setup.empty() ? "" : ": ", setup, ". ",
                   later.empty() ? "" : absl::StrCat("Beside steps: ", later, ".")),
      0);
}

std::string StepsHead(const v1::Steps& reply) {
  if (reply.count() == 0) {
    return "No steps were seen: no optimizer step, no NVTX range, no period in the "
           "launches.\n";
  }
  bool traced = AnyStepTraced(reply);
  std::string text = absl::StrCat("Steps: ", FormatCount(reply.count()), ", told ",
                                  SourceWords(reply.source()), "; median ",
                                  FormatDuration(reply.median().duration_ns()), "\n",
                                  Medians(reply, traced));
  if (traced) absl::StrAppend(&text, DeviceLine(reply));
  return text;
}

std::string StepsTable(const v1::Steps& reply) {
  if (reply.steps().empty()) return "";
  bool ranks = std::any_of(reply.steps().begin(), reply.steps().end(),
                           [](const v1::StepRow& step) { return step.rank() >= 0; });
  std::vector<std::string> columns = {">step", ranks ? ">rank" : ">pid", ">took"};
  for (const Part& part : kParts) columns.push_back(absl::StrCat(">", part.title));
  Table table(std::move(columns));
  for (const v1::StepRow& step : reply.steps()) {
    std::string process = ranks ? step.rank() >= 0 ? absl::StrCat(step.rank()) : "-"
                                : absl::StrCat(step.pid());
    std::vector<std::string> cells = {
        absl::StrCat(step.number()), process,
        step.duration_ns() == 0 ? "-" : FormatDuration(step.duration_ns())};
    for (const Part& part : kParts) cells.push_back(Cell(part, step, step.traced()));
    table.AddRow(std::move(cells));
  }
  return table.Text();
}

std::string StepsText(const v1::ReportReply& reply, v1::GroupBy /*group_by*/) {
  std::string text = absl::StrCat("\n", StepsHead(reply.steps()));
  if (!reply.steps().steps().empty()) {
    absl::StrAppend(&text, "\n", StepsTable(reply.steps()));
  }
  const std::string parts = PhasePartsText(reply.steps());
  if (!parts.empty()) absl::StrAppend(&text, "\n", parts);
  return Answer(reply, GpuHead(reply.job(), reply.gpu()), text);
}

}  // namespace lull
