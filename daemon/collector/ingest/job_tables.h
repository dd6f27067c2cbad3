// What the processes of one job share: names of APIs, frames, stacks, sites. Each is
// stored once per job and named by a small integer, so that the same line of two
// ranks is the same number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/aggregate/backward_stack.h"
#include "daemon/aggregate/site.h"
#include "daemon/collector/ingest/gpu_tables.h"
#include "daemon/storage/store.h"
#include "events.pb.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "ingest.pb.h"

namespace lull::collector {

// Not thread-safe. What is new is held until Flush puts it into the store.
class JobTables {
 public:
  static absl::StatusOr<std::unique_ptr<JobTables>> Load(storage::StoreReader& reader,
                                                         int64_t job);

  void AddApis(const google::protobuf::RepeatedPtrField<v1::ApiName>& apis);
  bool HasApi(uint32_t id) const { return id == 0 || apis_.contains(id); }
  const std::string& ApiName(uint32_t id) const;

  uint32_t InternFrame(const v1::Frame& frame);
  // The id of a stack with these frames; 0 for an empty one. `more`: ids of those that
  // the definition does not have itself.
  uint32_t InternStack(const v1::StackDef& definition, std::vector<uint32_t> more = {});

  std::vector<const aggregate::Frame*> Frames(uint32_t stack) const;

  // Of one line the first text counts, and of a job so much text as a relay keeps.
  void AddSource(const v1::SourceDef& source);

  struct SiteIds {
    uint32_t line = 0;
    uint32_t function = 0;
  };
  SiteIds SiteOf(uint32_t python_stack, uint32_t native_stack);

  // The site of the line that called backward(); 0: this is no such stack, or nobody
  // knows.
  uint32_t CallerOf(uint32_t python_stack);

  // The site of what a process had before we looked.
  SiteIds SiteOfBefore();

  GpuTables& gpu() { return gpu_; }

  absl::Status Flush(storage::StoreWriter& writer, int64_t job);

 private:
  // A frame by its content; of frames_, or of a message that is looked up.
  struct FrameText {
    std::string_view function, file, module;
    int32_t line = 0;
    friend bool operator==(const FrameText&, const FrameText&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const FrameText& f) {
      return H::combine(std::move(h), f.function, f.file, f.module, f.line);
    }
  };

  const aggregate::Frame* SelectSite(
      const std::vector<const aggregate::Frame*>& python,
      const std::vector<const aggregate::Frame*>& native = {});
  uint32_t InternSite(storage::SiteRow row);
  SiteIds InternSites(const aggregate::Frame& frame, const std::string& function,
                      SiteIds backward_of, SiteIds forward);
  SiteIds SiteOfBackward(const aggregate::BackwardStack& stack);
  void Remember(const storage::FrameRow& row);
  void Remember(storage::StackRow row);
  void Remember(const storage::SiteRow& row);
  void Remember(const storage::SourceRow& row);

  GpuTables gpu_;
  absl::flat_hash_map<uint32_t, storage::ApiRow> apis_;
  std::vector<std::unique_ptr<aggregate::Frame>> frames_;              // by id - 1
  absl::flat_hash_map<const aggregate::Frame*, bool> infrastructure_;  // once asked
  std::vector<std::vector<uint32_t>> stacks_;                          // by id - 1
  absl::flat_hash_map<FrameText, uint32_t> frame_ids_;
  absl::flat_hash_map<std::string, uint32_t> stack_ids_;  // by content
  absl::flat_hash_map<std::string, uint32_t> site_ids_;
  absl::flat_hash_set<std::pair<std::string, uint32_t>> sources_;  // file, line
  size_t source_bytes_ = 0;

  std::vector<storage::ApiRow> new_apis_;
  std::vector<storage::FrameRow> new_frames_;
  std::vector<storage::StackRow> new_stacks_;
  std::vector<storage::SiteRow> new_sites_;
  std::vector<storage::SourceRow> new_sources_;
};

}  // namespace lull::collector
