#include "cli/render/ps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/render/command_name.h"
#include "cli/render/lines.h"
#include "cli/render/ps_words.h"
#include "cli/render/table.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

using attach::Examination;
using attach::Obstacle;
using attach::Process;
using attach::Role;

constexpr size_t kLongestCommand = 4096;
constexpr size_t kShortestCommand = 20;
constexpr size_t kMostPids = 6;

std::string AttachWords(const Examination& seen) {
  if (!seen.CanBeAttached()) return absl::StrCat("no: ", seen.obstacles[0].brief);
  switch (seen.role) {
    case Role::kLauncher:
      return "its ranks";
    case Role::kHelper:
      return "yes (helper)";
    case Role::kForkChild:
      return "yes (worker)";
    case Role::kOrdinary:
      break;
  }
  return "yes";
}

std::string CommandCell(const Process& process, size_t width) {
  // Without arguments it is but a name: "[kworker/0:1]".
  if (process.arguments.empty()) return Shortened(CommandOf(process), width);
  return ShortCommand(CommandOf(process), width);
}

std::string Rows(const std::vector<Examination>& processes, size_t width) {
  Table table({">PID", "user", "rank", "GPU", "program", "attach", "command"});
  for (const Examination& seen : processes) {
    const Process& process = seen.process;
    table.AddRow({absl::StrCat(process.pid), Printable(process.user),
                  RankWords(process.rank), GpuWords(process), ProgramWords(process),
                  Printable(AttachWords(seen)),
                  width == 0 ? "" : CommandCell(process, width)});
  }
  return table.Text();
}

// Columns that are left for the commands.
size_t CommandWidth(const std::vector<Examination>& processes, size_t columns) {
  if (columns == 0) return kLongestCommand;
  // The title line is as wide as any, and ends with the title of the commands.
  std::string rows = Rows(processes, 0);
  size_t taken = rows.find("command");
  return columns < taken + kShortestCommand ? kShortestCommand : columns - taken;
}

std::string PidList(const std::vector<pid_t>& pids) {
  std::vector<pid_t> first(pids.begin(), pids.begin() + static_cast<ptrdiff_t>(std::min(
                                                            pids.size(), kMostPids)));
  std::string text = absl::StrJoin(first, ", ");
  if (pids.size() > kMostPids) {
    absl::StrAppend(&text, " and ", pids.size() - kMostPids, " more");
  }
  return text;
}

// Each kind of refusal once, with those that it keeps from being attached to.
std::string Refusals(const std::vector<Examination>& processes) {
  struct Kind {
    const Obstacle* example;
    std::vector<pid_t> pids;
  };
  std::vector<Kind> kinds;
  for (const Examination& seen : processes) {
    if (seen.CanBeAttached()) continue;
    const Obstacle& first = seen.obstacles[0];
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&first](const Kind& known) {
      return known.example->id == first.id && known.example->brief == first.brief;
    });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Kind{&first, {}});
    kind->pids.push_back(seen.process.pid);
  }
  std::string text;
  for (const Kind& kind : kinds) {
    const Obstacle& example = *kind.example;
    absl::StrAppend(
        &text, "\nno: ", Printable(example.brief), " (", PidList(kind.pids), ")\n",
        Wrapped(Printable(absl::StrCat(example.what, " ", example.advice)), 4));
  }
  return text;
}

std::string HiddenLine(size_t hidden) {
  if (hidden == 0) return "";
  return absl::StrCat(hidden,
                      hidden == 1 ? " helper or worker is" : " helpers and workers are",
                      " not shown (--all).\n");
}

void AddPart(const std::string& title, const std::vector<Obstacle>& list,
             std::string* text) {
  if (list.empty()) return;
  absl::StrAppend(text, "\n", title, "\n");
  for (const Obstacle& one : list) {
    absl::StrAppend(text, Wrapped(Printable(absl::StrCat(one.id, ": ", one.what)), 2));
    if (one.advice.empty()) continue;
    absl::StrAppend(text, Wrapped(Printable(absl::StrCat("-> ", one.advice)), 6));
  }
}

std::string Verdict(const Examination& seen, const std::vector<pid_t>& workers) {
  pid_t pid = seen.process.pid;
  std::string below = workers.empty() || workers == std::vector<pid_t>{pid}
                          ? ""
                          : absl::StrCat("\nThe processes of this job that train: ",
                                         absl::StrJoin(workers, ", "), ".\n");
  if (!seen.CanBeAttached()) return below;
  switch (seen.role) {
    case Role::kLauncher:
      return absl::StrCat(below, workers.empty()
                                     ? "\nIt is a launcher, and no rank of it is there "
                                       "yet; try again when the job trains.\n"
                                     : absl::StrCat("It is a launcher: `lull attach ",
                                                    pid, "` attaches to them.\n"));
    case Role::kHelper:
      return absl::StrCat(below,
                          "\nIt can be attached to, but it is a helper of "
                          "multiprocessing and trains nothing.\n");
    case Role::kForkChild:
      return absl::StrCat(
          below,
          "\nIt can be attached to, but it is a fork of its parent that "
          "uses no GPU: most likely a\nDataLoader worker. The training "
          "is in ",
          seen.process.parent, " or above.\n");
    case Role::kOrdinary:
      break;
  }
  return absl::StrCat(below, "\nIt can be attached to: lull attach ", pid, "\n");
}

std::string LibcWords(const Process& process) {
  if (!process.glibc_version.empty()) {
    return absl::StrCat("glibc ", process.glibc_version);
  }
  if (!process.files.glibc.empty()) return "glibc";
  if (process.files.musl) return "musl";
  return process.program.known && process.program.loader.empty() ? "static" : "";
}

std::string ProgramLine(const Process& process) {
  std::vector<std::string> words = {ProgramWords(process)};
  if (process.program.known) {
    words.push_back(attach::MachineName(process.program.machine));
  }
  std::string libc = LibcWords(process);
  if (!libc.empty()) words.push_back(libc);
  return absl::StrJoin(words, ", ");
}

std::string RankLine(const Rank& rank) {
  std::string words = RankWords(rank);
  if (rank.local_rank >= 0) absl::StrAppend(&words, " (local ", rank.local_rank, ")");
  return words;
}

std::string GpuLine(const Process& process) {
  std::string cuda = process.files.cuda_driver    ? "CUDA has been called"
                     : process.files.cuda_runtime ? "CUDA is loaded, not called yet"
                                                  : "no CUDA";
  if (process.gpu_devices.empty()) return cuda;
  return absl::StrCat(cuda, ", holds GPU ", absl::StrJoin(process.gpu_devices, ", "));
}

}  // namespace

std::string PsText(const std::vector<Examination>& processes, size_t hidden,
                   size_t columns) {
  if (processes.empty()) {
    return absl::StrCat("No process here runs Python or has loaded CUDA.\n",
                        HiddenLine(hidden));
  }
  return absl::StrCat(
      Rows(processes, CommandWidth(processes, columns)), Refusals(processes), "\n",
      HiddenLine(hidden),
      "`lull attach PID` watches a process, or all ranks of a launcher; "
      "`lull ps PID` explains one.\n");
}

std::string ProcessText(const Examination& seen, const std::vector<pid_t>& workers) {
  const Process& process = seen.process;
  std::string text =
      absl::StrCat("PID ", process.pid, ": ",
                   Shortened(CommandOf(process), kLongestCommand), "\n\n");
  auto line = [&text](const char* name, const std::string& value) {
    std::string title(name);
    title.resize(12, ' ');
    absl::StrAppend(&text, "  ", title, Printable(value), "\n");
  };
  line("user", process.user);
  line("parent", absl::StrCat(process.parent));
  line("started", FormatUtc(process.start_realtime_ns));
  line("threads", absl::StrCat(process.threads));
  if (process.readable) {
    line("executable", process.executable);
    line("program", ProgramLine(process));
    line("GPU", GpuLine(process));
    line("rank", RankLine(process.rank));
  }
  AddPart("It cannot be attached to:", seen.obstacles, &text);
  absl::StrAppend(&text, Verdict(seen, workers));
  AddPart("Good to know:", seen.notes, &text);
  return text;
}

}  // namespace lull
