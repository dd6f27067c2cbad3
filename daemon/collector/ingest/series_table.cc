#include "daemon/collector/ingest/series_table.h"

#include "absl/strings/match.h"
#include "daemon/aggregate/wait_kind.h"
#include "daemon/base/status.h"

namespace lull::collector {

using storage::RefKind;

namespace {

uint64_t Pack(RefKind kind, uint32_t ref) {
  return static_cast<uint64_t>(kind) << 32 | ref;
}

SeriesContent ContentOf(const Series& s) {
  return {{static_cast<uint32_t>(s.type), s.variant, s.api, s.python_stack,
           s.native_stack, s.line_site, s.function_site, s.shape, s.gpu_stream,
           s.before_line, s.before_function, s.after_line, s.after_function}};
}

}  // namespace

absl::Status SeriesTable::Load(storage::StoreReader& reader, int64_t process) {
  LULL_ASSIGN_OR_RETURN(auto series,
                        reader.catalogue().All<storage::SeriesRow>(process));
  for (const storage::SeriesRow& row : series) {
    if (row.id >= most_ids_) {
      return absl::DataLossError("a series of a number too high");
    }
    if (all_.size() <= row.id) all_.resize(row.id + 1);
    all_[row.id] = row.series;
    by_content_[ContentOf(row.series)] = row.id;
  }
  flushed_ = all_.size();
  LULL_ASSIGN_OR_RETURN(auto refs, reader.catalogue().All<storage::RefRow>(process));
  for (const storage::RefRow& row : refs) refs_[Pack(row.kind, row.ref)] = row.id;
  return absl::OkStatus();
}

void SeriesTable::Define(RefKind kind, uint32_t ref, uint32_t id) {
  auto [it, fresh] = refs_.try_emplace(Pack(kind, ref), id);
  if (!fresh && it->second == id) return;
  // The look-ups that were made with the older meaning are void.
  if (!fresh || undefined_.erase(Pack(kind, ref)) > 0) by_identity_.clear();
  it->second = id;
  new_refs_.push_back({kind, ref, id});
}

uint32_t SeriesTable::Meaning(RefKind kind, uint32_t ref) {
  if (ref == 0) return 0;
  auto it = refs_.find(Pack(kind, ref));
  if (it != refs_.end()) return it->second;
  undefined_.insert(Pack(kind, ref));
  return 0;
}

bool SeriesTable::LaunchesGraph(uint32_t id) const {
  return absl::StrContains(tables_->ApiName(all_[id].api), "GraphLaunch");
}

uint32_t SeriesTable::Intern(const Series& series) {
  auto [it, fresh] = by_content_.try_emplace(ContentOf(series), 0);
  if (fresh && all_.size() < most_ids_) {
    it->second = static_cast<uint32_t>(all_.size());
    all_.push_back(series);
  }
  return it->second;
}

uint32_t SeriesTable::Group(EventType type, const Series& allocation) {
  Series group{.type = type,
               .variant = static_cast<uint8_t>(aggregate::AllocatorOf(allocation))};
  if (type == EventType::kTotalGroup) group.shape = allocation.shape;
  if (type == EventType::kLineGroup) group.line_site = allocation.line_site;
  if (type == EventType::kFunctionGroup) {
    group.function_site = allocation.function_site;
  }
  return Intern(group);
}

uint32_t SeriesTable::Add(const EventIdentity& identity) {
  Series series{.type = identity.type,
                .variant = identity.variant,
                .api = identity.api,
                .shape = identity.shape};
  if (full()) {
    if (!aggregate::IsOfTorch(series.type)) series.shape = 0;
  } else if (series.type >= EventType::kGpuKernel &&
             series.type <= EventType::kGpuDevice) {
    if (series.type == EventType::kGpuKernel) {
      series.shape = Meaning(RefKind::kKernel, identity.python_ref);
    }
  } else {
    series.python_stack = Meaning(RefKind::kStack, identity.python_ref);
    series.native_stack = Meaning(RefKind::kStack, identity.native_ref);
  }
  // Never left out: blame needs the stream, and there are few.
  if (aggregate::IsOperation(series.type) || series.type == EventType::kGpuStreamWait) {
    series.gpu_stream = Meaning(RefKind::kGpuStream, identity.native_ref);
  }
  JobTables::SiteIds site =
      aggregate::IsBefore(series)
          ? tables_->SiteOfBefore()
          : tables_->SiteOf(series.python_stack,
                            series.type == EventType::kScope ? 0 : series.native_stack);
  series.line_site = site.line;
  series.function_site = site.function;
  if (series.type == EventType::kHostWait) {
    aggregate::WaitKind kind =
        identity.variant == kWaitWithinData
            ? aggregate::WaitKind::kWithinData
            : aggregate::ClassifyWait(tables_->ApiName(series.api),
                                      identity.from_python,
                                      tables_->Frames(series.python_stack),
                                      tables_->Frames(series.native_stack));
    series.variant = static_cast<uint8_t>(kind);
  }
  if (aggregate::IsAllocation(series)) {
    if (!aggregate::IsUndrawn(series)) {
      series.line_group = Group(EventType::kLineGroup, series);
      series.function_group = Group(EventType::kFunctionGroup, series);
    }
    series.total_group = Group(EventType::kTotalGroup, series);
  }
  uint32_t id = Intern(series);
  by_identity_[identity] = id;
  return id;
}

absl::Status SeriesTable::Flush(storage::StoreWriter& writer, int64_t process) {
  LULL_RETURN_IF_ERROR(writer.catalogue().PutAll(process, new_refs_));
  for (; flushed_ < all_.size(); ++flushed_) {
    LULL_RETURN_IF_ERROR(writer.catalogue().Put(
        process, storage::SeriesRow{static_cast<uint32_t>(flushed_), all_[flushed_]}));
  }
  return absl::OkStatus();
}

}  // namespace lull::collector
