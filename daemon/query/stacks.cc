#include "daemon/query/stacks.h"

#include <string>
#include <utility>

#include "daemon/aggregate/site.h"
#include "daemon/base/backward_frames.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

LoaderFile LoaderFileOf(const std::string& file) {
  constexpr std::pair<const char*, LoaderFile> kFiles[] = {
      {"/torch/utils/data/_utils/fetch.py", LoaderFile::kFetch},
      {"/torch/utils/data/_utils/collate.py", LoaderFile::kCollate},
      {"/torch/utils/data/_utils/worker.py", LoaderFile::kWorker},
      {"/torch/utils/data/dataloader.py", LoaderFile::kIterator},
      {"/torch/storage.py", LoaderFile::kStorage},
      {"/multiprocessing/queues.py", LoaderFile::kQueue},
      {"/threading.py", LoaderFile::kThreading},
  };
  for (const auto& [end, which] : kFiles) {
    // torch.profiler cuts off what sys.path begins with.
    if (file.ends_with(end) || file == std::string_view(end).substr(1)) return which;
  }
  return LoaderFile::kNone;
}

}  // namespace

absl::Status Stacks::Read() {
  LULL_ASSIGN_OR_RETURN(auto frames, reader_.catalogue().All<storage::FrameRow>(job_));
  LULL_ASSIGN_OR_RETURN(auto stacks, reader_.catalogue().All<storage::StackRow>(job_));
  absl::flat_hash_map<std::pair<std::string, std::string>, uint32_t> functions;
  for (storage::FrameRow& row : frames) {
    Known known;
    known.function = functions.try_emplace({row.frame.file, row.frame.function}, row.id)
                         .first->second;
    known.owner = aggregate::IsPythonInfrastructure(row.frame.file)
                      ? Owner::kInfrastructure
                  : aggregate::IsPythonPackage(row.frame.file) ? Owner::kPackage
                                                               : Owner::kUser;
    known.import = row.frame.file.starts_with("<frozen importlib.");
    known.loader = LoaderFileOf(row.frame.file);
    known.frame = std::move(row.frame);
    frames_[row.id] = std::move(known);
  }
  for (storage::StackRow& row : stacks) {
    if (!row.native) stacks_[row.id] = std::move(row.frames);
  }
  return absl::OkStatus();
}

void Stacks::Load() {
  if (std::exchange(loaded_, true)) return;
  status_ = Read();
}

const std::vector<uint32_t>& Stacks::Frames(uint32_t stack) {
  static const auto* const kNone = new std::vector<uint32_t>;
  Load();
  auto it = stacks_.find(stack);
  return it == stacks_.end() ? *kNone : it->second;
}

const Stacks::Known& Stacks::Find(uint32_t frame) {
  static const auto* const kNone = new Known;
  Load();
  auto it = frames_.find(frame);
  return it == frames_.end() ? *kNone : it->second;
}

const aggregate::Frame& Stacks::Frame(uint32_t frame) { return Find(frame).frame; }

uint32_t Stacks::Function(uint32_t frame) { return Find(frame).function; }

// The first of `count` that belongs to `at_most` or to somebody before it.
uint32_t Stacks::First(const std::vector<uint32_t>& frames, size_t count,
                       Owner at_most) {
  for (size_t i = 0; i < count; ++i) {
    if (Find(frames[i]).owner <= at_most) return frames[i];
  }
  return 0;
}

size_t Stacks::BelowFetch(const std::vector<uint32_t>& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (FileOf(frames[i]) == LoaderFile::kFetch) return i;
  }
  return 0;
}

uint32_t Stacks::UserFrame(const std::vector<uint32_t>& frames) {
  if (frames.empty()) return 0;
  const size_t below = BelowFetch(frames);
  return UserFrame(frames, below != 0 ? below : frames.size());
}

uint32_t Stacks::UserFrame(const std::vector<uint32_t>& frames, size_t count) {
  if (frames.empty()) return 0;
  uint32_t frame = First(frames, count, Owner::kUser);
  if (frame == 0) frame = First(frames, count, Owner::kPackage);
  return frame != 0 ? frame : frames.front();
}

bool Stacks::IsWritten(uint32_t frame, uint32_t user) {
  const Owner owner = Find(frame).owner;
  return owner != Owner::kInfrastructure && owner == Find(user).owner;
}

uint32_t Stacks::CalleeOf(const std::vector<uint32_t>& frames, uint32_t user) {
  if (frames.empty() || frames.front() == user) return 0;
  const uint32_t written = WrittenFrame(frames);
  return written != user ? written : frames.front();
}

uint32_t Stacks::WrittenFrame(const std::vector<uint32_t>& frames) {
  uint32_t frame = First(frames, frames.size(), Owner::kPackage);
  return frame != 0 || frames.empty() ? frame : frames.front();
}

size_t Stacks::BeforeForward(const std::vector<uint32_t>& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (Frame(frames[i]).module == kForwardModule) return i;
  }
  return frames.size();
}

void Stacks::FillSite(uint32_t frame, lull::v1::Site* site) {
  const aggregate::Frame& from = Frame(frame);
  site->set_file(from.file);
  site->set_line(from.line);
  site->set_function(from.function);
}

void Stacks::FillStack(uint32_t stack,
                       google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames) {
  for (uint32_t id : Frames(stack)) {
    const aggregate::Frame& from = Frame(id);
    lull::v1::Frame* out = frames->Add();
    out->set_function(from.function);
    out->set_file(from.file);
    out->set_line(from.line);
  }
}

}  // namespace lull::query
