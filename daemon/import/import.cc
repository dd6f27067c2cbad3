#include "daemon/import/import.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/logging.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "daemon/import/chrome_reader.h"
#include "daemon/import/input.h"
#include "daemon/import/nsys_reader.h"
#include "daemon/import/snapshot_events.h"
#include "daemon/import/snapshot_reader.h"
#include "daemon/import/translate.h"
#include "daemon/relay/deliver/hello.h"
#include "daemon/relay/deliver/spool.h"

namespace lull::imports {
namespace {

namespace fs = std::filesystem;

// The spool's own limit must not cut a job short.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;
// What a frame of a stack takes where it is kept; of a spool hardly anything.
constexpr uint64_t kFrameBytes = 16;
// In a spool of which nobody knows whose it is yet.
constexpr char kUnfinished[] = "importing";
// One job's processes run together.
constexpr uint64_t kFarthest = uint64_t{86'400} * 1'000'000'000;
// Times of a trace without a date begin anywhere.
constexpr uint64_t kEarliestDate = uint64_t{1'000'000'000} * 1'000'000'000;  // 2001

std::string NameOf(const std::string& path) {
  return fs::path(path).filename().string();
}

// "rank3", "rank-3", "rank_3" in a name; -1: none.
int32_t RankInName(const std::string& name) {
  size_t at = name.find("rank");
  if (at == std::string::npos) return -1;
  at += 4;
  if (at < name.size() && (name[at] == '-' || name[at] == '_')) ++at;
  size_t end = at;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  int32_t rank = -1;
  return absl::SimpleAtoi(name.substr(at, end - at), &rank) ? rank : -1;
}

void Fill(const std::map<std::string, uint64_t>& counts,
          google::protobuf::RepeatedPtrField<lull::v1::ImportInfo::Count>* out) {
  for (const auto& [what, count] : counts) {
    auto* row = out->Add();
    row->set_what(what);
    row->set_count(count);
  }
  std::stable_sort(out->begin(), out->end(),
                   [](const auto& a, const auto& b) { return a.count() > b.count(); });
  if (out->size() <= kMaxImportLines) return;
  auto* others = out->Mutable(kMaxImportLines - 1);
  for (int i = kMaxImportLines; i < out->size(); ++i) {
    others->set_count(others->count() + out->Get(i).count());
  }
  others->set_what("others");
  out->DeleteSubrange(kMaxImportLines, out->size() - kMaxImportLines);
}

class Importer {
 public:
  Importer(const std::vector<std::string>& files, std::string directory,
           const OnProgress& on_progress, const Confirm& confirm,
           lull::v1::JobInfo* job, uint64_t most_bytes)
      : files_(files),
        directory_(std::move(directory)),
        on_progress_(on_progress),
        confirm_(confirm),
        job_(*job),
        most_bytes_(most_bytes) {}

  // Leaves nothing behind after an error.
  absl::Status Run() {
    absl::Status written = Write();
    if (written.ok() || !keeper_) return written;
    spool_.reset();
    absl::Status removed = RemoveTree(directory_);
    return removed.ok() ? written : Annotate(written, removed.ToString());
  }

 private:
  absl::Status Write() {
    for (size_t i = 0; i < files_.size(); ++i) {
      absl::Status imported = ImportFile(i);
      if (!imported.ok()) return Annotate(imported, files_[i]);
    }
    FillJob();
    lull::v1::Batch end;
    end.mutable_job_end()->set_end_ns(end_ns_);
    end.mutable_job_end()->set_exit_status(-1);
    LULL_RETURN_IF_ERROR(OpenSpool());
    LULL_RETURN_IF_ERROR(spool_->Append(&end));
    return spool_->WriteHello(relay::MakeHello(job_));
  }

  absl::Status OpenSpool() {
    if (spool_ != nullptr) return absl::OkStatus();
    if (confirm_) LULL_RETURN_IF_ERROR(confirm_());
    LULL_RETURN_IF_ERROR(MakePrivateDirectory(directory_));
    absl::StatusOr<UniqueFd> keeper = relay::KeepSpool(directory_);
    if (absl::IsUnavailable(keeper.status())) {
      return absl::UnavailableError(
          "another lull import is at these files; ask for the job once it is done");
    }
    LULL_RETURN_IF_ERROR(keeper.status());
    // The collector may have a part of it, which goes with this one alone.
    std::error_code error;
    if (fs::exists(fs::path(directory_) / "hello", error)) {
      return absl::AlreadyExistsError("another import laid it down meanwhile");
    }
    keeper_ = *std::move(keeper);
    if (confirm_) LULL_RETURN_IF_ERROR(confirm_());
    std::ofstream(fs::path(directory_) / kUnfinished).flush();
    // What an import left that was killed: nobody can tell how far it came.
    for (const auto& entry : fs::directory_iterator(directory_, error)) {
      if (entry.path().extension() == ".spool") fs::remove(entry.path(), error);
    }
    LULL_ASSIGN_OR_RETURN(spool_, relay::Spool::Open(directory_, kNoLimit));
    return absl::OkStatus();
  }

  absl::Status ImportFile(size_t index) {
    Progress progress;
    if (on_progress_) {
      progress = [this, index](uint64_t read, uint64_t whole) {
        return on_progress_(
            index,
            whole > 0 ? static_cast<double>(read) / static_cast<double>(whole) : 1.0);
      };
    }
    if (IsSqlite(files_[index])) return ImportNsys(index);
    LULL_ASSIGN_OR_RETURN(std::unique_ptr<Input> input,
                          Input::Open(files_[index], std::move(progress)));
    if (BeginsAsPickle(input->Peek())) return ImportSnapshot(index, std::move(input));
    formats_.insert("torch.profiler");
    LULL_ASSIGN_OR_RETURN(Trace trace, ReadChromeTrace(*input));
    input.reset();
    LULL_RETURN_IF_ERROR(ChooseRank(index, &trace));
    LULL_RETURN_IF_ERROR(OpenSpool());
    return ImportProcess(trace);
  }

  // Ranks are not told: they are where there is one process for each device.
  absl::Status ImportNsys(size_t index) {
    formats_.insert("Nsight Systems");
    LULL_RETURN_IF_ERROR(OpenSpool());  // reading a database cannot be broken off
    LULL_ASSIGN_OR_RETURN(std::vector<Trace> traces, ReadNsysTrace(files_[index]));
    std::set<uint32_t> devices;
    for (const Trace& trace : traces) {
      if (!trace.streams.empty()) devices.insert(trace.streams.front().device);
    }
    for (Trace& trace : traces) {
      if (traces.size() > 1 && devices.size() == traces.size() && files_.size() == 1) {
        trace.rank = static_cast<int32_t>(
            std::distance(devices.begin(), devices.find(trace.streams.front().device)));
      }
      LULL_RETURN_IF_ERROR(ImportProcess(trace));
      trace = Trace();  // the memory goes back
    }
    return absl::OkStatus();
  }

  absl::Status ImportSnapshot(size_t index, std::unique_ptr<Input> input) {
    formats_.insert("PyTorch's memory snapshot");
    LULL_ASSIGN_OR_RETURN(Snapshot snapshot, ReadSnapshot(*input));
    input.reset();
    LULL_RETURN_IF_ERROR(ChooseRank(index, &snapshot.trace));
    LULL_RETURN_IF_ERROR(OpenSpool());
    ImportCounts counts;
    LULL_RETURN_IF_ERROR(
        TranslateSnapshot(snapshot, ++processes_, apis_, Sink(), &counts));
    return Add(snapshot.trace, counts);
  }

  absl::Status ImportProcess(Trace& trace) {
    ImportCounts counts;
    LULL_RETURN_IF_ERROR(Translate(trace, ++processes_, apis_, Sink(), &counts));
    traces_ = true;
    return Add(trace, counts);
  }

  BatchSink Sink() {
    return [this](lull::v1::Batch* batch) {
      LULL_RETURN_IF_ERROR(spool_->Append(batch));
      bytes_ += static_cast<uint64_t>(batch->GetCachedSize());  // as it was written
      for (const auto& stacks : batch->stacks()) {
        bytes_ += static_cast<uint64_t>(stacks.frame_numbers_size()) * kFrameBytes;
      }
      if (bytes_ <= most_bytes_) return absl::OkStatus();
      return absl::ResourceExhaustedError(
          absl::StrCat("its stacks and names would take more than ", most_bytes_ >> 20,
                       " MiB of disk, which no real trace of its size does"));
    };
  }

  absl::Status ChooseRank(size_t index, Trace* trace) {
    if (trace->rank < 0) trace->rank = RankInName(NameOf(files_[index]));
    if (trace->rank < 0 && files_.size() > 1) trace->rank = static_cast<int32_t>(index);
    if (trace->rank < 0) return absl::OkStatus();
    auto [it, fresh] = ranks_.try_emplace(trace->rank, index);
    if (fresh) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("it is of rank ", trace->rank, ", as ", files_[it->second],
                     " is; two windows of one rank are two jobs, import them one by "
                     "one"));
  }

  absl::Status Add(const Trace& trace, const ImportCounts& counts) {
    events_ += trace.events;
    resolution_ns_ = std::max(resolution_ns_, trace.resolution_ns);
    for (const auto& [why, count] : trace.ignored) ignored_[why] += count;
    for (const auto& [why, count] : counts.ignored) ignored_[why] += count;
    for (const auto& [what, count] : counts.found) found_[what] += count;
    for (const auto& [rule, applied] : counts.applied) applied_[rule] |= applied;
    lines_of_functions_ |= counts.lines_of_functions;
    segments_.insert(segments_.end(), counts.segments.begin(), counts.segments.end());
    not_applied_.insert(counts.not_applied.begin(), counts.not_applied.end());
    if (counts.events == 0) return absl::OkStatus();
    if (end_ns_ != 0 && (counts.start_ns > start_ns_ + kFarthest ||
                         counts.start_ns + kFarthest < start_ns_)) {
      return absl::InvalidArgumentError(
          "its times are days from those of the files before it, so it is of another "
          "job; import them one by one");
    }
    start_ns_ = end_ns_ == 0 ? counts.start_ns : std::min(start_ns_, counts.start_ns);
    end_ns_ = std::max(end_ns_, counts.end_ns);
    return absl::OkStatus();
  }

  void FillJob() {
    job_.set_start_ns(start_ns_);
    job_.set_start_realtime_ns(start_ns_ >= kEarliestDate ? start_ns_ : 0);
    job_.set_gpu_mode(lull::v1::GPU_MODE_CONTINUOUS);
    lull::v1::ImportInfo* told = job_.mutable_imported();
    told->set_format(absl::StrJoin(formats_, " and "));
    for (const std::string& file : files_) {
      if (told->files_size() < kMaxImportLines) {
        told->add_files(CleanText(NameOf(file)));
      }
    }
    told->set_files_in_all(static_cast<uint32_t>(files_.size()));
    told->set_events(events_);
    Fill(ignored_, told->mutable_ignored());
    Fill(found_, told->mutable_found());
    if (traces_) {
      for (std::string& rule : RulesNotApplied(applied_)) {
        told->add_not_applied(std::move(rule));
      }
    }
    for (const std::string& rule : not_applied_) told->add_not_applied(rule);
    for (const lull::v1::SegmentUse& use : segments_) {
      if (told->segments_size() < kMaxImportLines) *told->add_segments() = use;
    }
    told->set_line_is_function_start(lines_of_functions_);
    told->set_resolution_ns(resolution_ns_);
  }

  const std::vector<std::string>& files_;
  const std::string directory_;
  UniqueFd keeper_;  // nobody else is at this spool, and nobody left it whole
  std::unique_ptr<relay::Spool> spool_;
  const OnProgress& on_progress_;
  const Confirm& confirm_;
  lull::v1::JobInfo& job_;
  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;  // of the spool
  ApiTable apis_;
  uint64_t processes_ = 0;
  std::set<std::string> formats_;
  std::map<int32_t, size_t> ranks_;
  uint64_t start_ns_ = 0, end_ns_ = 0;
  uint64_t events_ = 0, resolution_ns_ = 1;
  std::map<std::string, uint64_t> ignored_, found_;
  std::map<std::string, bool> applied_;
  bool lines_of_functions_ = false;
  bool traces_ = false;  // not of memory alone
  std::vector<lull::v1::SegmentUse> segments_;
  std::set<std::string> not_applied_;
};

}  // namespace

absl::StatusOr<uint64_t> MostSpoolBytes(const std::vector<std::string>& files) {
  // Text packs 10 to 25 times. The spool of a file of 105 KB made for it: 13.8 GB.
  constexpr uint64_t kLeast = uint64_t{256} << 20;
  constexpr uint64_t kTimesTheFile = 64;
  uint64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    bytes += fs::file_size(file, error);
    if (error) return ErrnoStatus(error.value(), file);
  }
  return kLeast + kTimesTheFile * bytes;
}

void RemoveUnfinished(const std::string& parent) {
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (fs::exists(entry.path() / kUnfinished, error) &&
        !fs::exists(entry.path() / "hello", error)) {
      found.push_back(entry.path().string());
    }
  }
  for (const std::string& directory : found) {
    auto keeper = relay::KeepSpool(directory);
    // It may have become whole meanwhile.
    if (!keeper.ok() || fs::exists(fs::path(directory) / "hello", error)) continue;
    if (absl::Status removed = RemoveTree(directory); !removed.ok()) {
      LogDebug(removed.ToString());
    }
  }
}

absl::Status WriteSpool(const std::vector<std::string>& files,
                        const std::string& directory, const OnProgress& on_progress,
                        const Confirm& confirm, lull::v1::JobInfo* job,
                        uint64_t most_bytes) {
  return Importer(files, directory, on_progress, confirm, job, most_bytes).Run();
}

}  // namespace lull::imports
