#include "daemon/query/reports.h"

#include <algorithm>

#include "daemon/aggregate/wait_kind.h"
#include "daemon/query/grouping.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

constexpr char kLoaderCall[] = "DataLoader.__next__";

template <typename Visitor>
void ForEach(const std::vector<ProcessSums>& processes, EventType type,
             Visitor&& visit) {
  for (const ProcessSums& sums : processes) {
    for (size_t id = 1; id < sums.series.size(); ++id) {
      if (sums.series[id].type != type) continue;
      visit(sums, static_cast<uint32_t>(id), sums.series[id], sums.cells[id]);
    }
  }
}

bool ByTime(const Group& a, const Group& b) { return a.sum.total_ns > b.sum.total_ns; }

// Groups all series of one type by what label(series) and the request say.
template <typename Label>
std::vector<Group> GroupType(const std::vector<ProcessSums>& processes, EventType type,
                             const v1::ReportRequest& request, Label label) {
  Grouping grouping(request.group_by());
  ForEach(processes, type,
          [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
            if (cell.count > 0) grouping.Add(label(series), series, cell);
          });
  return grouping.Sorted(ByTime);
}

// Allocations, frees and their blocking time by allocator; what is live comes from
// the series that stands for the whole group.
Grouping GroupAllocations(const std::vector<ProcessSums>& processes,
                          const v1::ReportRequest& request) {
  Grouping grouping(request.group_by());
  auto label = [](const Series& s) {
    return static_cast<uint32_t>(aggregate::AllocatorOf(s));
  };
  auto add_live = [&](const ProcessSums& sums, uint32_t id, const Series& series) {
    if (sums.LiveAtEnd(id) == 0 && sums.Peak(id) == 0) return;
    Group& group = grouping.At(label(series), series);
    group.live += sums.LiveAtEnd(id);
    group.peak += sums.Peak(id);
  };
  for (EventType type : {EventType::kDeviceMemory, EventType::kTorchMemory}) {
    ForEach(processes, type,
            [&](const ProcessSums& sums, uint32_t id, const Series& series, Cell cell) {
              bool allocates = aggregate::IsAllocation(series);
              if (!allocates) {  // a free or a failure: its time alone is of interest
                if (type == EventType::kTorchMemory || cell.total_ns == 0) return;
                cell.count = cell.amount = cell.frees = 0;
              }
              if (!cell.empty() || cell.total_ns != 0) {
                grouping.Add(label(series), series, cell);
              }
              if (allocates && request.group_by() == v1::GROUP_BY_STACK) {
                add_live(sums, id, series);
              }
            });
  }
  if (request.group_by() == v1::GROUP_BY_STACK) return grouping;
  ForEach(processes,
          request.group_by() == v1::GROUP_BY_FUNCTION ? EventType::kFunctionGroup
                                                      : EventType::kLineGroup,
          [&](const ProcessSums& sums, uint32_t id, const Series& series, const Cell&) {
            add_live(sums, id, series);
          });
  return grouping;
}

// Free events that released nothing we knew.
uint64_t UnknownFrees(const std::vector<ProcessSums>& processes) {
  uint64_t frees = 0;
  for (EventType type : {EventType::kDeviceMemory, EventType::kTorchMemory}) {
    ForEach(processes, type,
            [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
              if (aggregate::IsFree(series)) frees += cell.frees;
            });
  }
  return frees;
}

// There is some, and none of a process that tells of waits alone.
bool KnowsAllDataTime(const std::vector<ProcessSums>& processes) {
  bool any = false;
  for (const ProcessSums& sums : processes) {
    bool blocked = false, loaded = false;
    sums.ForEach([&](const Series& series, const Cell& cell) {
      if (!aggregate::IsDataWait(series) || cell.count == 0) return;
      (aggregate::IsLoading(series) ? loaded : blocked) = true;
    });
    if (blocked && !loaded &&
        sums.process.counters.scope_hook() != v1::SCOPE_HOOK_STATE_ON) {
      return false;
    }
    any = any || blocked || loaded;
  }
  return any;
}

// Reads of all imports are one row: nobody asked for one of them.
constexpr uint32_t kOfImports = 1u << 16;

bool ReadsForAnImport(const Series& series, Stacks& stacks) {
  if (series.type != EventType::kHostWait ||
      aggregate::WaitKindOf(series) != aggregate::WaitKind::kIo) {
    return false;
  }
  const std::vector<uint32_t>& frames = stacks.Frames(series.python_stack);
  return std::any_of(frames.begin(), frames.end(),
                     [&](uint32_t frame) { return stacks.IsImporting(frame); });
}

// What GPU truth says of the calls of each row.
class JudgedSyncs {
 public:
  JudgedSyncs(const std::vector<ProcessSums>& processes, v1::GroupBy by)
      : costs_(by), wasted_(by) {
    ForEach(processes, EventType::kSyncCost,
            [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
              if (!cell.empty()) costs_.Add(series.api, series, cell);
            });
    ForEach(processes, EventType::kIdle,
            [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
              if (aggregate::CauseOf(series) != v1::GAP_CAUSE_SYNC || cell.empty())
                return;
              wasted_.Add(series.api, series, cell);
            });
  }

  void Fill(const Group& group, v1::SyncPoint* row) {
    const Cell& cost = costs_.At(group.label, group.longest).sum;
    row->set_judged_calls(cost.count);
    row->set_judged_blocked_ns(cost.total_ns);
    row->set_needed_ns(cost.amount);
    row->set_wasted_ns(wasted_.At(group.label, group.longest).sum.total_ns);
  }

 private:
  Grouping costs_;
  Grouping wasted_;
};

}  // namespace

void FillSyncs(const std::vector<ProcessSums>& processes,
               const v1::ReportRequest& request, Names& names, v1::Syncs* reply) {
  std::vector<Group> groups = GroupType(processes, EventType::kSync, request,
                                        [](const Series& s) { return s.api; });
  uint64_t blocked = 0, calls = 0;
  for (const Group& group : groups) {
    blocked += group.sum.total_ns;
    calls += group.sum.count;
  }
  reply->set_total_blocked_ns(blocked);
  reply->set_total_calls(calls);
  Cut(request.top(), &groups);
  JudgedSyncs judged(processes, request.group_by());
  for (const Group& group : groups) {
    v1::SyncPoint* row = reply->add_sync_points();
    judged.Fill(group, row);
    row->set_api(names.Api(group.label));
    row->set_calls(group.sum.count);
    row->set_blocked_ns(group.sum.total_ns);
    row->set_max_ns(group.sum.max_ns);
    row->set_bytes(group.sum.amount);
    names.FillSite(group.site, row->mutable_site());
    names.FillStack(group.longest.python_stack, row->mutable_stack());
    names.FillStack(group.longest.native_stack, row->mutable_native_stack());
  }
}

void FillAllocations(const std::vector<ProcessSums>& processes,
                     const v1::ReportRequest& request, Names& names,
                     v1::Allocations* reply) {
  std::vector<Group> groups =
      GroupAllocations(processes, request).Sorted([](const Group& a, const Group& b) {
        return a.sum.amount != b.sum.amount ? a.sum.amount > b.sum.amount
                                            : ByTime(a, b);
      });
  uint64_t bytes = 0, calls = 0;
  for (const Group& group : groups) {
    bytes += group.sum.amount;
    calls += group.sum.count;
  }
  reply->set_total_bytes(bytes);
  reply->set_total_calls(calls);
  reply->set_unknown_frees(UnknownFrees(processes));
  Cut(request.top(), &groups);
  for (const Group& group : groups) {
    v1::AllocationSite* row = reply->add_allocation_sites();
    row->set_allocator(
        aggregate::AllocatorName(static_cast<aggregate::Allocator>(group.label)));
    row->set_calls(group.sum.count);
    row->set_frees(group.sum.frees);
    row->set_bytes(group.sum.amount);
    row->set_live_bytes(group.live);
    row->set_peak_bytes(group.peak);
    row->set_blocked_ns(group.sum.total_ns);
    names.FillSite(group.site, row->mutable_site());
    names.FillStack(group.longest.python_stack, row->mutable_stack());
    names.FillStack(group.longest.native_stack, row->mutable_native_stack());
  }
}

void FillGc(const std::vector<ProcessSums>& processes, const v1::ReportRequest& request,
            Names& names, v1::GcPauses* reply) {
  std::vector<Group> groups =
      GroupType(processes, EventType::kGcPause, request, aggregate::GenerationOf);
  uint64_t total = 0, count = 0;
  for (const Group& group : groups) {
    total += group.sum.total_ns;
    count += group.sum.count;
  }
  reply->set_total_ns(total);
  reply->set_total_count(count);
  Cut(request.top(), &groups);
  for (const Group& group : groups) {
    v1::GcPause* row = reply->add_gc_pauses();
    row->set_generation(group.label);
    row->set_count(group.sum.count);
    row->set_total_ns(group.sum.total_ns);
    row->set_max_ns(group.sum.max_ns);
    row->set_collected(group.sum.amount);
    row->set_uncollectable(group.sum.amount2);
    names.FillSite(group.site, row->mutable_site());
    names.FillStack(group.longest.python_stack, row->mutable_stack());
  }
}

void FillWaits(const std::vector<ProcessSums>& processes,
               const v1::ReportRequest& request, Names& names, Stacks& stacks,
               v1::HostWaits* reply) {
  Grouping grouping(request.group_by());
  for (EventType type : {EventType::kHostWait, EventType::kScope}) {
    ForEach(processes, type,
            [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
              if (!aggregate::IsWait(series) || cell.count == 0) return;
              const auto kind = static_cast<uint32_t>(aggregate::WaitKindOf(series));
              if (ReadsForAnImport(series, stacks)) {
                grouping.Add(kind | kOfImports, {.type = series.type}, cell);
              } else {
                grouping.Add(kind, series, cell);
              }
            });
  }
  std::vector<Group> groups = grouping.Sorted(ByTime);
  uint64_t total = 0;
  for (const Group& group : groups) total += group.sum.total_ns;
  reply->set_total_ns(total);
  reply->set_data_exact(KnowsAllDataTime(processes));
  Cut(request.top(), &groups);
  for (const Group& group : groups) {
    v1::HostWait* row = reply->add_host_waits();
    row->set_kind(aggregate::WaitKindName(
        static_cast<aggregate::WaitKind>(group.label & ~kOfImports)));
    // Waits for the GIL on the way into __next__ or out of it add their time, and are
    // no calls.
    row->set_api(group.loads > 0 ? kLoaderCall : names.Api(group.longest.api));
    row->set_count(group.loads > 0 ? group.loads : group.sum.count);
    row->set_total_ns(group.sum.total_ns);
    row->set_max_ns(group.sum.max_ns);
    names.FillSite(group.site, row->mutable_site());
    if ((group.label & kOfImports) != 0) row->mutable_site()->set_function("(imports)");
    names.FillStack(group.longest.python_stack, row->mutable_stack());
  }
}

uint64_t CountLaunches(const std::vector<ProcessSums>& processes) {
  uint64_t launches = 0;
  ForEach(processes, EventType::kLaunch,
          [&](const ProcessSums&, uint32_t, const Series&, const Cell& cell) {
            launches += cell.count;
          });
  return launches;
}

}  // namespace lull::query
