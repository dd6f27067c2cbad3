#include "daemon/relay/read/source_excerpts.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/stat.h"

namespace lull::relay {
namespace {

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
  process.pid = pid;
  process.owner = MappedBy::Process(pid);
  process.root = std::make_shared<const UniqueFd>(open(
      absl::StrCat("/proc/", pid, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  process.number = ++numbers_;
  process.not_after_ns = job_start_ns_ ? *job_start_ns_ : StartOf(pid);
}

// A process of root's may have given up its rights since: what it names now is not for
// root to read. (One that is gone counts as root's, and stays what it was.)
void SourceExcerpts::FollowRights(Process* process) {
  if (process->owner.uid != 0) return;
  const MappedBy now = MappedBy::Process(process->pid);
  if (now.uid != 0) process->owner = now;
}

void SourceExcerpts::Ask(const Process& process, const v1::Batch::Stacks& stacks) {
  SourceReader::Request request{
      process.owner, process.root, process.number, process.not_after_ns, {}};
  for (const v1::StackDef& stack : stacks.stacks()) {
    if (stack.native()) continue;
    for (const v1::Frame& frame : stack.frames()) {
      if (frame.line() <= 0 || frame.file().empty() || frame.file()[0] != '/') continue;
      const auto line = static_cast<uint32_t>(frame.line());
      if (known_.size() >= kMaxExcerpts) break;
      auto [place, added] = known_.insert({frame.file(), line});
      if (added) request.lines.push_back(*place);
    }
  }
  std::sort(request.lines.begin(), request.lines.end());
  reader_.Ask(std::move(request));
}

bool SourceExcerpts::HasRead() {
  for (const SourceReader::Quoted& one : reader_.Take()) {
    v1::SourceDef source;
    source.set_file(one.at.file);
    source.set_line(one.at.line);
    source.set_first_line(one.excerpt.first_line);
    for (const std::string& line : one.excerpt.lines) source.add_lines(line);
    if (bytes_ >= kMaxExcerptBytes) break;
    bytes_ += source.ByteSizeLong();
    read_.push_back(std::move(source));
  }
  return !read_.empty();
}

void SourceExcerpts::AddTo(v1::Batch* batch) {
  for (const v1::Batch::Stacks& stacks : batch->stacks()) {
    auto process = processes_.find(stacks.process_key());
    if (process == processes_.end() || !*process->second.root) continue;
    if (bytes_ >= kMaxExcerptBytes) continue;
    FollowRights(&process->second);
    Ask(process->second, stacks);
  }
  if (!HasRead()) return;
  for (const v1::SourceDef& source : read_) *batch->add_sources() = source;
  in_batch_ = std::exchange(read_, {});
}

void SourceExcerpts::Drop() {
  std::move(in_batch_.begin(), in_batch_.end(), std::back_inserter(read_));
  in_batch_.clear();
}

}  // namespace lull::relay
