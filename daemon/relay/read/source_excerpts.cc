#include "daemon/relay/read/source_excerpts.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/base/text.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/stat.h"
#include "daemon/relay/symbols/source_file.h"

namespace lull::relay {
namespace {

// Each question may hold a descriptor.
constexpr size_t kAtOnce = 64;

uint64_t ClockNs(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

// CLOCK_REALTIME; 0: not known. To a tick, and never too late.
uint64_t StartOf(pid_t pid) {
  const std::string stat = Procfs().Read(pid, "stat").text;
  uint64_t ticks = 0;
  if (!absl::SimpleAtoi(StatField(stat, kStatStart), &ticks)) return 0;
  const uint64_t start_ns =
      ticks * (1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK)));
  const uint64_t up_ns = ClockNs(CLOCK_BOOTTIME);
  return ClockNs(CLOCK_REALTIME) - std::max(up_ns, start_ns) + start_ns;
}

}  // namespace

void SourceExcerpts::Watch(uint64_t key, pid_t pid) {
  if (pid <= 0) return;
  Process& process = processes_[key];
  process.owner = MappedBy::Process(pid);
  process.root.reset(open(absl::StrCat("/proc/", pid, "/root").c_str(),
                          O_PATH | O_DIRECTORY | O_CLOEXEC));
  process.number = ++numbers_;
  process.not_after_ns = job_start_ns_ ? *job_start_ns_ : StartOf(pid);
}

std::vector<SourceExcerpts::Line> SourceExcerpts::NewLines(
    const v1::Batch::Stacks& stacks) {
  std::set<Line> lines;  // those of one file together
  for (const v1::StackDef& stack : stacks.stacks()) {
    if (stack.native()) continue;
    for (const v1::Frame& frame : stack.frames()) {
      if (frame.line() <= 0 || frame.file().empty() || frame.file()[0] != '/') continue;
      Line line(frame.file(), static_cast<uint32_t>(frame.line()));
      if (!known_.contains(line)) lines.insert(std::move(line));
    }
  }
  return {lines.begin(), lines.end()};
}

void SourceExcerpts::AddTo(v1::Batch* batch) {
  for (const v1::Batch::Stacks& stacks : batch->stacks()) {
    auto process = processes_.find(stacks.process_key());
    if (process == processes_.end() || !process->second.root) continue;
    const std::vector<Line> lines = NewLines(stacks);
    for (size_t at = 0; at < lines.size(); at += kAtOnce) {
      if (given_up_ || known_.size() >= kMaxExcerpts || bytes_ >= kMaxExcerptBytes) {
        return;
      }
      Ask(process->second, &lines[at], std::min(kAtOnce, lines.size() - at), batch);
    }
  }
}

void SourceExcerpts::Ask(const Process& process, const Line* lines, size_t count,
                         v1::Batch* batch) {
  // A reader of root's files has nobody's rights; who reads them otherwise is root,
  // too.
  const bool ours = process.owner.uid == 0 && geteuid() == 0;
  std::vector<SymbolReader::Question> questions(count);
  for (size_t i = 0; i < count; ++i) {
    const auto& [file, line] = lines[i];
    questions[i].module = process.number;
    questions[i].offset = line;
    questions[i].path = file;
    questions[i].not_after_ns = process.not_after_ns;
    questions[i].file = ours ? OpenSource(process.root.get(), file)
                             : UniqueFd(fcntl(process.root.get(), F_DUPFD_CLOEXEC, 0));
    known_.insert(lines[i]);
    fresh_.push_back(lines[i]);
  }
  std::vector<SymbolAnswer> answers;
  modules_->Quote(process.owner, questions, &answers);
  if (answers.size() < count) {
    given_up_ = true;
    LogWarning("no more lines of source are kept: reading them failed");
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    const SymbolAnswer& answer = answers[i];
    const uint64_t line = lines[i].second;
    // It is the word of a process that may have been taken over.
    if (answer.frames.empty() || answer.frames.size() > 2 * kLinesAround + 1 ||
        answer.address == 0 || answer.address > line ||
        answer.address + answer.frames.size() <= line) {
      continue;
    }
    v1::SourceDef* source = batch->add_sources();
    source->set_file(lines[i].first);
    source->set_line(lines[i].second);
    source->set_first_line(static_cast<uint32_t>(answer.address));
    for (const NativeFrame& text : answer.frames) {
      source->add_lines(CleanText(text.function, kMaxSourceLine));
    }
    bytes_ += source->ByteSizeLong();
  }
}

void SourceExcerpts::Drop() {
  for (const Line& line : fresh_) known_.erase(line);
  fresh_.clear();
}

}  // namespace lull::relay
