#include "daemon/collector/ingest/job_tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace lull::collector {
namespace {

// What a relay keeps to (source_excerpts.h), in all. One that is started again counts
// from the beginning.
constexpr size_t kMaxSources = 4096;
constexpr size_t kMaxSourceBytes = 1 << 20;

// Keys by content. '\n' cannot be confused: lengths come first.
std::string KeyOf(const storage::SiteRow& s) {
  return absl::StrCat(s.file.size(), ",", s.line, ",", s.backward_of, ",", s.forward,
                      "\n", s.file, s.function);
}

std::string KeyOf(const storage::StackRow& s) {
  std::string key(1, static_cast<char>((s.native ? 1 : 0) | (s.truncated ? 2 : 0)));
  key.append(reinterpret_cast<const char*>(s.frames.data()),
             s.frames.size() * sizeof(uint32_t));
  return key;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobTables>> JobTables::Load(storage::StoreReader& reader,
                                                           int64_t job) {
  auto tables = std::make_unique<JobTables>();
  LULL_ASSIGN_OR_RETURN(auto apis, reader.catalogue().All<storage::ApiRow>(job));
  for (storage::ApiRow& api : apis) tables->apis_[api.id] = std::move(api);
  LULL_ASSIGN_OR_RETURN(auto frames, reader.catalogue().All<storage::FrameRow>(job));
  for (const storage::FrameRow& row : frames) tables->Remember(row);
  LULL_ASSIGN_OR_RETURN(auto stacks, reader.catalogue().All<storage::StackRow>(job));
  for (storage::StackRow& row : stacks) tables->Remember(std::move(row));
  LULL_ASSIGN_OR_RETURN(auto sites, reader.catalogue().All<storage::SiteRow>(job));
  for (const storage::SiteRow& row : sites) tables->Remember(row);
  LULL_ASSIGN_OR_RETURN(auto sources, reader.catalogue().All<storage::SourceRow>(job));
  for (const storage::SourceRow& row : sources) tables->Remember(row);
  LULL_RETURN_IF_ERROR(tables->gpu_.Load(reader, job));
  return tables;
}

void JobTables::Remember(const storage::FrameRow& row) {
  if (frames_.size() < row.id) frames_.resize(row.id);
  frames_[row.id - 1] = std::make_unique<aggregate::Frame>(row.frame);
  const aggregate::Frame& kept = *frames_[row.id - 1];
  frame_ids_[{kept.function, kept.file, kept.module, kept.line}] = row.id;
}

void JobTables::Remember(storage::StackRow row) {
  stack_ids_[KeyOf(row)] = row.id;
  if (stacks_.size() < row.id) stacks_.resize(row.id);
  stacks_[row.id - 1] = std::move(row.frames);
}

void JobTables::Remember(const storage::SiteRow& row) {
  site_ids_[KeyOf(row)] = row.id;
}

void JobTables::Remember(const storage::SourceRow& row) {
  sources_.emplace(row.def.file(), row.def.line());
  source_bytes_ += row.def.ByteSizeLong();
}

void JobTables::AddSource(const lull::v1::SourceDef& source) {
  if (sources_.size() >= kMaxSources ||
      source_bytes_ + source.ByteSizeLong() > kMaxSourceBytes ||
      sources_.contains(std::make_pair(source.file(), source.line()))) {
    return;
  }
  new_sources_.push_back({static_cast<uint32_t>(sources_.size() + 1), source});
  Remember(new_sources_.back());
}

void JobTables::AddApis(
    const google::protobuf::RepeatedPtrField<lull::v1::ApiName>& apis) {
  for (const lull::v1::ApiName& api : apis) {
    storage::ApiRow& known = apis_[api.id()];
    if (known.name == api.name() && known.family == api.family()) continue;
    known = {api.id(), api.name(), api.family()};
    new_apis_.push_back(known);
  }
}

const std::string& JobTables::ApiName(uint32_t id) const {
  static const std::string* const none = new std::string;
  auto it = apis_.find(id);
  return it == apis_.end() ? *none : it->second.name;
}

uint32_t JobTables::InternFrame(const lull::v1::Frame& frame) {
  auto known = frame_ids_.find(
      FrameText{frame.function(), frame.file(), frame.module(), frame.line()});
  if (known != frame_ids_.end()) return known->second;
  auto id = static_cast<uint32_t>(frames_.size() + 1);
  new_frames_.push_back(
      {id, {frame.function(), frame.file(), frame.line(), frame.module()}});
  Remember(new_frames_.back());
  return id;
}

uint32_t JobTables::InternStack(const lull::v1::StackDef& definition,
                                std::vector<uint32_t> more) {
  storage::StackRow row;
  row.native = definition.native();
  row.truncated = definition.truncated();
  row.frames = std::move(more);
  for (const lull::v1::Frame& frame : definition.frames()) {
    row.frames.push_back(InternFrame(frame));
  }
  if (row.frames.empty()) return 0;
  auto known = stack_ids_.find(KeyOf(row));
  if (known != stack_ids_.end()) return known->second;
  row.id = static_cast<uint32_t>(stacks_.size() + 1);
  new_stacks_.push_back(row);
  Remember(std::move(row));
  return new_stacks_.back().id;
}

std::vector<const aggregate::Frame*> JobTables::Frames(uint32_t stack) const {
  std::vector<const aggregate::Frame*> frames;
  if (stack == 0 || stack > stacks_.size()) return frames;
  for (uint32_t id : stacks_[stack - 1]) frames.push_back(frames_[id - 1].get());
  return frames;
}

// New stacks are mostly of known frames, and the answer takes several searches in a
// path.
const aggregate::Frame* JobTables::SelectSite(
    const std::vector<const aggregate::Frame*>& python,
    const std::vector<const aggregate::Frame*>& native) {
  return aggregate::SelectSite(python, native, [this](const aggregate::Frame& frame) {
    auto [known, fresh] = infrastructure_.try_emplace(&frame);
    if (fresh) known->second = aggregate::IsPythonInfrastructure(frame.file);
    return known->second;
  });
}

uint32_t JobTables::InternSite(storage::SiteRow row) {
  std::string key = KeyOf(row);
  auto known = site_ids_.find(key);
  if (known != site_ids_.end()) return known->second;
  row.id = static_cast<uint32_t>(site_ids_.size() + 1);
  site_ids_[std::move(key)] = row.id;
  new_sites_.push_back(row);
  return row.id;
}

JobTables::SiteIds JobTables::InternSites(const aggregate::Frame& frame,
                                          const std::string& function,
                                          SiteIds backward_of, SiteIds forward) {
  return {
      InternSite({0, frame.file, frame.line, function, backward_of.line, forward.line}),
      InternSite({0, frame.file, 0, function, backward_of.function, forward.function})};
}

// The line is the caller's: that is known for certain of everything that the engine
// does. A node that was made elsewhere is another site.
JobTables::SiteIds JobTables::SiteOfBackward(const aggregate::BackwardStack& stack) {
  SiteIds forward, caller;
  if (const aggregate::Frame* frame = SelectSite(stack.forward)) {
    forward = InternSites(*frame, aggregate::SiteFunction(*frame), {}, {});
  }
  const aggregate::Frame* frame = SelectSite(stack.caller);
  static const auto* const kNowhere = new aggregate::Frame;
  if (frame == nullptr) return InternSites(*kNowhere, stack.node, {}, forward);
  caller = InternSites(*frame, aggregate::SiteFunction(*frame), {}, {});
  return InternSites(*frame, stack.node, caller, forward);
}

JobTables::SiteIds JobTables::SiteOf(uint32_t python_stack, uint32_t native_stack) {
  const auto python = Frames(python_stack), native = Frames(native_stack);
  if (auto backward = aggregate::AsBackward(python, native)) {
    return SiteOfBackward(*backward);
  }
  const aggregate::Frame* frame = SelectSite(python, native);
  if (frame == nullptr) return {};
  return InternSites(*frame, aggregate::SiteFunction(*frame), {}, {});
}

uint32_t JobTables::CallerOf(uint32_t python_stack) {
  const auto backward = aggregate::AsBackward(Frames(python_stack), {});
  if (!backward) return 0;
  const aggregate::Frame* frame = SelectSite(backward->caller);
  if (frame == nullptr) return 0;
  return InternSites(*frame, aggregate::SiteFunction(*frame), {}, {}).line;
}

JobTables::SiteIds JobTables::SiteOfBefore() {
  const uint32_t site = InternSite({0, "", 0, "(allocated before lull came)"});
  return {site, site};
}

absl::Status JobTables::Flush(storage::StoreWriter& writer, int64_t job) {
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(job, new_apis_));
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(job, new_frames_));
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(job, new_stacks_));
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(job, new_sites_));
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(job, new_sources_));
  return gpu_.Flush(writer, job);
}

}  // namespace lull::collector
