#include "daemon/query/reports.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/wait_kind.h"
#include "daemon/query/grouping.h"
#include "daemon/query/rows.h"
#include "daemon/query/steps.h"

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
std::vector<Group> GroupType(const View& view, EventType type, Label label) {
  Grouping grouping(view.request.group_by());
  ForEach(view.processes, type,
          [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
            if (cell.count > 0) grouping.Add(label(series), series, cell);
          });
  return grouping.Sorted(ByTime);
}

uint32_t AllocatorLabel(const Series& series) {
  return static_cast<uint32_t>(aggregate::AllocatorOf(series));
}

// What allocators hold in all, by process and allocator: exact.
class Wholes {
 public:
  explicit Wholes(const std::vector<ProcessSums>& processes) {
    ForEach(
        processes, EventType::kTotalGroup,
        [&](const ProcessSums& sums, uint32_t id, const Series& series, const Cell&) {
          Held& held = held_[{&sums, AllocatorLabel(series)}];
          held.live += sums.LiveAtEnd(id);
          held.peak += sums.Peak(id);
        });
  }

  // Adds what is live and peaks of a part, which is an estimate if the group is one:
  // one drawn block may stand for more than there ever was, and the highest of many
  // estimates mostly does.
  void AddPart(const ProcessSums& sums, uint32_t id, const Series& part, Group& group) {
    int64_t live = sums.LiveAtEnd(id), peak = sums.Peak(id);
    if (group.estimated) {
      const Held& most = held_[{&sums, AllocatorLabel(part)}];
      live = std::min(live, most.live);
      peak = std::min(peak, most.peak);
    }
    group.live += live;
    group.peak += peak;
  }

 private:
  struct Held {
    int64_t live = 0, peak = 0;
  };
  absl::flat_hash_map<std::pair<const ProcessSums*, uint32_t>, Held> held_;
};

// Allocations, frees and their blocking time by allocator; what is live comes from
// the series that stands for the whole group.
Grouping GroupAllocations(const View& view) {
  const v1::GroupBy group_by = view.request.group_by();
  Grouping grouping(group_by);
  Wholes wholes(view.processes);
  auto add_live = [&](const ProcessSums& sums, uint32_t id, const Series& series) {
    if (sums.LiveAtEnd(id) == 0 && sums.Peak(id) == 0) return;
    wholes.AddPart(sums, id, series, grouping.At(AllocatorLabel(series), series));
  };
  for (EventType type : {EventType::kDeviceMemory, EventType::kTorchMemory}) {
    ForEach(view.processes, type,
            [&](const ProcessSums& sums, uint32_t id, const Series& series, Cell cell) {
              if (aggregate::IsUndrawn(series)) return;
              bool allocates = aggregate::IsAllocation(series);
              if (!allocates) {  // a free or a failure: its time alone is of interest
                if (type == EventType::kTorchMemory || cell.total_ns == 0) return;
                cell.count = cell.amount = cell.frees = 0;
              }
              if (!cell.empty() || cell.total_ns != 0 ||
                  (aggregate::IsDrawn(series) && sums.LiveAtEnd(id) != 0)) {
                grouping.Add(AllocatorLabel(series), series, cell);
              }
              if (allocates && group_by == v1::GROUP_BY_STACK) {
                add_live(sums, id, series);
              }
            });
  }
  if (group_by == v1::GROUP_BY_STACK) return grouping;
  ForEach(view.processes,
          group_by == v1::GROUP_BY_FUNCTION ? EventType::kFunctionGroup
                                            : EventType::kLineGroup,
          [&](const ProcessSums& sums, uint32_t id, const Series& series, const Cell&) {
            add_live(sums, id, series);
          });
  return grouping;
}

// Calls visit(series, cell) for all that FillWaits lists.
template <typename Visitor>
void ForEachWait(const std::vector<ProcessSums>& processes, Visitor&& visit) {
  for (EventType type : {EventType::kHostWait, EventType::kScope}) {
    ForEach(processes, type,
            [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
              if (aggregate::IsWait(series) && cell.count > 0) visit(series, cell);
            });
  }
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

Cell SumOf(const std::vector<Group>& groups) {
  Cell sum;
  for (const Group& group : groups) sum.Append(group.sum);
  return sum;
}

// What GPU truth says of the calls of each row.
class JudgedSyncs {
 public:
  explicit JudgedSyncs(const View& view)
      : costs_(view.request.group_by()), wasted_(view.request.group_by()) {
    ForEach(view.processes, EventType::kSyncCost,
            [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
              if (!cell.empty()) costs_.Add(series.api, series, cell);
            });
    ForEach(view.processes, EventType::kIdle,
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

absl::Status FillSyncs(View& view, v1::ReportReply* reply) {
  v1::Syncs* out = reply->mutable_syncs();
  Names& names = *view.names;
  std::vector<Group> groups =
      GroupType(view, EventType::kSync, [](const Series& s) { return s.api; });
  const Cell sum = SumOf(groups);
  out->set_total_blocked_ns(sum.total_ns);
  out->set_total_calls(sum.count);
  Cut(view.request.top(), &groups);
  JudgedSyncs judged(view);
  for (const Group& group : groups) {
    v1::SyncPoint* row = out->add_sync_points();
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
  return absl::OkStatus();
}

absl::Status FillAllocations(View& view, v1::ReportReply* reply) {
  v1::Allocations* out = reply->mutable_allocations();
  Names& names = *view.names;
  std::vector<Group> groups =
      GroupAllocations(view).Sorted([](const Group& a, const Group& b) {
        return a.bytes() != b.bytes() ? a.bytes() > b.bytes() : ByTime(a, b);
      });
  const Cell sum = SumOf(groups), small = SumOfSmall(view.processes);
  out->set_total_bytes(sum.amount + small.amount);
  out->set_total_calls(sum.count + small.count);
  out->set_unknown_frees(UnknownFrees(view.processes));
  Cut(view.request.top(), &groups);
  for (const Group& group : groups) {
    v1::AllocationSite* row = out->add_allocation_sites();
    row->set_allocator(
        aggregate::AllocatorName(static_cast<aggregate::Allocator>(group.label)));
    row->set_calls(group.calls());
    row->set_frees(group.frees());
    row->set_bytes(group.bytes());
    row->set_estimated(group.estimated);
    row->set_error_bytes(group.error_bytes());
    row->set_live_bytes(group.live);
    row->set_peak_bytes(group.peak);
    row->set_blocked_ns(group.sum.total_ns);
    names.FillSite(group.site, row->mutable_site());
    names.FillStack(group.longest.python_stack, row->mutable_stack());
    names.FillStack(group.longest.native_stack, row->mutable_native_stack());
  }
  return absl::OkStatus();
}

absl::Status FillGc(View& view, v1::ReportReply* reply) {
  v1::GcPauses* out = reply->mutable_gc();
  std::vector<Group> groups =
      GroupType(view, EventType::kGcPause, aggregate::GenerationOf);
  const Cell sum = SumOf(groups);
  out->set_total_ns(sum.total_ns);
  out->set_total_count(sum.count);
  Cut(view.request.top(), &groups);
  for (const Group& group : groups) {
    v1::GcPause* row = out->add_gc_pauses();
    row->set_generation(group.label);
    row->set_count(group.sum.count);
    row->set_total_ns(group.sum.total_ns);
    row->set_max_ns(group.sum.max_ns);
    row->set_collected(group.sum.amount);
    row->set_uncollectable(group.sum.amount2);
    view.names->FillSite(group.site, row->mutable_site());
    view.names->FillStack(group.longest.python_stack, row->mutable_stack());
  }
  return FillCollectionsInSteps(view, out);
}

absl::Status FillWaits(View& view, v1::ReportReply* reply) {
  v1::HostWaits* out = reply->mutable_waits();
  Names& names = *view.names;
  Grouping grouping(view.request.group_by());
  ForEachWait(view.processes, [&](const Series& series, const Cell& cell) {
    const auto kind = static_cast<uint32_t>(aggregate::WaitKindOf(series));
    if (ReadsForAnImport(series, *view.stacks)) {
      grouping.Add(kind | kOfImports, {.type = series.type}, cell);
    } else {
      grouping.Add(kind, series, cell);
    }
  });
  std::vector<Group> groups = grouping.Sorted(ByTime);
  out->set_total_ns(SumOf(groups).total_ns);
  out->set_data_exact(KnowsAllDataTime(view.processes));
  Cut(view.request.top(), &groups);
  for (const Group& group : groups) {
    v1::HostWait* row = out->add_host_waits();
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
  return absl::OkStatus();
}

std::map<aggregate::WaitKind, Cell> WaitsByKind(
    const std::vector<ProcessSums>& processes) {
  std::map<aggregate::WaitKind, Cell> kinds;
  ForEachWait(processes, [&kinds](const Series& series, const Cell& cell) {
    kinds[aggregate::WaitKindOf(series)].Append(cell);
  });
  return kinds;
}

Cell SumOfSmall(const std::vector<ProcessSums>& processes) {
  Cell sum;
  ForEach(processes, EventType::kTorchMemory,
          [&](const ProcessSums&, uint32_t, const Series& series, const Cell& cell) {
            if (aggregate::IsUndrawn(series)) sum.Append(cell);
          });
  ForEach(processes, EventType::kTotalGroup,
          [&](const ProcessSums&, uint32_t, const Series&, const Cell& cell) {
            sum.Append(cell);
          });
  return sum;
}

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

uint64_t CountLaunches(const std::vector<ProcessSums>& processes) {
  uint64_t launches = 0;
  ForEach(processes, EventType::kLaunch,
          [&](const ProcessSums&, uint32_t, const Series&, const Cell& cell) {
            launches += cell.count;
          });
  return launches;
}

}  // namespace lull::query
