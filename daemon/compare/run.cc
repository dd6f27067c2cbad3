#include "daemon/compare/run.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/words/format.h"

namespace lull::compare {
namespace {

v1::ReportRequest InTime(const Run& run, const ProcessSteps& process, uint64_t since,
                         uint64_t until) {
  v1::ReportRequest request;
  request.set_job(run.whole.job().id());
  request.set_pid(process.pid);
  request.set_since_ns(since);
  request.set_until_ns(until);
  return request;
}

}  // namespace

v1::ReportRequest RequestForWhole(const std::string& job) {
  v1::ReportRequest request;
  request.set_job(job);
  request.set_top(1);
  request.set_phase(v1::PHASE_ALL);
  request.add_details()->set_section(v1::SECTION_STEPS);
  return request;
}

v1::ReportRequest RequestForAll(const Run& run, const ProcessSteps& process) {
  v1::ReportRequest request =
      InTime(run, process, process.BeginOf(0), process.BeginOf(kPieces));
  // A detail, because a job without host samples has none and still an answer.
  request.add_details()->set_section(v1::SECTION_HOT);
  return request;
}

v1::ReportRequest RequestForPiece(const Run& run, const ProcessSteps& process,
                                  size_t piece) {
  v1::ReportRequest request =
      InTime(run, process, process.BeginOf(piece), process.BeginOf(piece + 1));
  request.add_sections(v1::SECTION_SYNCS);
  request.set_with_sources(true);
  return request;
}

std::set<std::string> FilesOf(const Run& run) {
  std::set<std::string> files = run.files;
  for (const ProcessReplies& replies : run.replies) {
    for (const v1::SyncPoint& row : replies.all.syncs().sync_points()) {
      files.insert(row.site().file());
      for (const v1::Frame& frame : row.stack()) files.insert(frame.file());
    }
  }
  return files;
}

LineTexts LinesOf(const Run& run) {
  LineTexts lines = run.lines;
  for (const ProcessReplies& replies : run.replies) {
    for (const v1::ReportReply& piece : replies.pieces) {
      for (const v1::SourceDef& source : piece.sources()) {
        lines.emplace(std::pair(source.file(), static_cast<int32_t>(source.line())),
                      TextOf(source));
      }
    }
  }
  return lines;
}

std::string NameOf(const v1::Job& job) {
  return job.name().empty()
             ? absl::StrCat("job ", ShortId(job.id()))
             : absl::StrCat(Shortened(job.name(), 60), " (", ShortId(job.id()), ")");
}

bool IsRecordedInAllSteps(absl::string_view allocator) {
  return !absl::StartsWith(allocator, "torch_");
}

}  // namespace lull::compare
