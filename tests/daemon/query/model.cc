#include "tests/daemon/query/model.h"

#include <algorithm>
#include <iterator>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/event_views.h"

namespace lull::test {
namespace {

using lull::v1::GroupBy;

std::string StackText(
    const google::protobuf::RepeatedPtrField<lull::v1::Frame>& frames) {
  std::string text;
  for (const auto& f : frames) absl::StrAppend(&text, f.function(), ":", f.line(), ";");
  return text;
}

std::string StackText(uint32_t ref) {
  static const auto* const stacks = new std::vector<lull::v1::StackDef>(MakeStacks());
  return ref == 0 ? "" : StackText((*stacks)[ref - 1].frames());
}

// Written out here once more, as a user would say it, not as the code computes it.
std::string SiteText(const TestEvent& event, GroupBy by) {
  if (by == lull::v1::GROUP_BY_STACK) {
    return absl::StrCat(StackText(event.python), "|", StackText(event.native));
  }
  bool line = by == lull::v1::GROUP_BY_LINE;
  if (event.python != 0) {
    return absl::StrCat("/home/u/train.py|", line ? 10 + event.python % 3 : 0, "|f",
                        event.python % 2);
  }
  if (event.native != 0) return absl::StrCat("|0|at::op", event.native);
  return "|0|";
}

bool InRange(const ModelEvent& e, const ModelQuery& query) {
  uint64_t after = e.event.start_ns > kJobStartNs ? e.event.start_ns - kJobStartNs : 0;
  return after >= query.since && after < query.until;
}

bool Wanted(const ModelEvent& e, const ModelQuery& query) {
  return query.process == 0 || e.process == query.process;
}

void Count(ModelRow& row, const TestEvent& event, uint64_t amount, uint64_t amount2) {
  ++row.count;
  row.total_ns += event.duration_ns;
  row.max_ns = std::max(row.max_ns, event.duration_ns);
  row.amount += amount;
  row.amount2 += amount2;
}

const char* ApiText(uint32_t api) {
  return api == kApiSync ? "cudaStreamSynchronize" : "";
}

std::string KindText(const TestEvent& event) {
  if (event.python == kDataStack) return "data";
  if (event.api == kApiPoll) return "io";
  return (event.flags & 32) != 0 ? "gil" : "lock";
}

std::string AllocatorText(const TestEvent& event) {
  if (event.type == v1::EVENT_TYPE_DEVICE_MEMORY)
    return (event.flags & 2) != 0 ? "pinned" : "cuda";
  return TypeOf(MemoryView{event}.device()) == 1 ? "torch_cuda" : "torch_cpu";
}

// The memory of one process, replayed from its first event.
class Replay {
 public:
  Replay(const ModelQuery& query, ModelReport& report)
      : query_(query), report_(report) {}

  void Run(std::vector<ModelEvent> events) {
    auto order = [](const ModelEvent& e) {
      return e.event.start_ns + ((e.event.flags & 1) != 0 ? 0 : e.event.duration_ns);
    };
    std::sort(events.begin(), events.end(),
              [&](const auto& a, const auto& b) { return order(a) < order(b); });
    for (const ModelEvent& e : events) Step(e);
    Enter();  // ranges that begin after the last event
    for (auto& [key, group] : groups_) {
      report_[key].live += group.live;
      report_[key].peak += group.peak;
    }
  }

 private:
  struct Block {
    std::string key;
    uint64_t bytes;
  };
  struct Group {
    int64_t live = 0, peak = 0;
  };

  // The range begins: what is live now is the first peak.
  void Enter() {
    if (entered_) return;
    entered_ = true;
    for (auto& [key, group] : groups_) group.peak = group.live;
  }

  void Release(const Block& block, bool counts) {
    groups_[block.key].live -= static_cast<int64_t>(block.bytes);
    if (counts) ++report_[block.key].frees;
  }

  void Step(const ModelEvent& e) {
    const TestEvent& event = e.event;
    bool counts = InRange(e, query_);
    if (counts) Enter();
    uint64_t after = event.start_ns > kJobStartNs ? event.start_ns - kJobStartNs : 0;
    if (after >= query_.until) return;
    std::string allocator = AllocatorText(event);
    std::string key = absl::StrCat(allocator, "|", SiteText(event, query_.by));
    std::string address = absl::StrCat(allocator, MemoryView{event}.address());
    const uint64_t bytes = MemoryView{event}.bytes();
    if ((event.flags & 1) != 0) {  // free
      if (counts && event.duration_ns > 0) report_[key].total_ns += event.duration_ns;
      auto it = blocks_.find(address);
      if (it == blocks_.end()) return;
      Release(it->second, counts);
      blocks_.erase(it);
      return;
    }
    auto it = blocks_.find(address);
    if (it != blocks_.end()) Release(it->second, counts);
    blocks_[address] = {key, bytes};
    Group& group = groups_[key];
    group.live += static_cast<int64_t>(bytes);
    if (!counts) return;
    group.peak = std::max(group.peak, group.live);
    Count(report_[key], event, bytes, 0);
  }

  const ModelQuery& query_;
  ModelReport& report_;
  bool entered_ = false;
  std::map<std::string, Block> blocks_;
  std::map<std::string, Group> groups_;
};

std::string SiteText(const lull::v1::Site& site,
                     const google::protobuf::RepeatedPtrField<lull::v1::Frame>& python,
                     const google::protobuf::RepeatedPtrField<lull::v1::Frame>& native,
                     GroupBy by) {
  if (by == lull::v1::GROUP_BY_STACK) {
    return absl::StrCat(StackText(python), "|", StackText(native));
  }
  return absl::StrCat(site.file(), "|", site.line(), "|", site.function());
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ModelRow& r) {
  return out << "{count " << r.count << " total " << r.total_ns << " max " << r.max_ns
             << " amount " << r.amount << "/" << r.amount2 << " frees " << r.frees
             << " live " << r.live << " peak " << r.peak << "}";
}

ModelReport ModelSyncs(const std::vector<ModelEvent>& events, const ModelQuery& query) {
  ModelReport report;
  for (const ModelEvent& e : events) {
    if (e.event.type != 3 || !Wanted(e, query) || !InRange(e, query)) continue;
    Count(report[absl::StrCat(ApiText(e.event.api), "|", SiteText(e.event, query.by))],
          e.event, CopyCallView{e.event}.bytes(), 0);
  }
  return report;
}

ModelReport ModelGc(const std::vector<ModelEvent>& events, const ModelQuery& query) {
  ModelReport report;
  for (const ModelEvent& e : events) {
    if (e.event.type != 7 || !Wanted(e, query) || !InRange(e, query)) continue;
    const GcPauseView pause{e.event};
    Count(report[absl::StrCat(pause.generation(), "|", SiteText(e.event, query.by))],
          e.event, pause.collected(), pause.uncollectable());
  }
  return report;
}

ModelReport ModelWaits(const std::vector<ModelEvent>& events, const ModelQuery& query) {
  ModelReport report;
  for (const ModelEvent& e : events) {
    if (e.event.type != 8 || !Wanted(e, query) || !InRange(e, query)) continue;
    Count(report[absl::StrCat(KindText(e.event), "|", SiteText(e.event, query.by))],
          e.event, 0, 0);
  }
  return report;
}

ModelReport ModelAllocations(const std::vector<ModelEvent>& events,
                             const ModelQuery& query) {
  std::map<uint64_t, std::vector<ModelEvent>> processes;
  for (const ModelEvent& e : events) {
    bool memory = e.event.type == v1::EVENT_TYPE_DEVICE_MEMORY ||
                  e.event.type == v1::EVENT_TYPE_TORCH_MEMORY;
    if (memory && Wanted(e, query)) processes[e.process].push_back(e);
  }
  ModelReport report;
  for (auto& [key, mine] : processes) Replay(query, report).Run(std::move(mine));
  for (auto it = report.begin(); it != report.end();) {
    it->second.max_ns = 0;  // not part of this report
    it = it->second == ModelRow{} ? report.erase(it) : std::next(it);
  }
  return report;
}

ModelReport FromReply(const lull::v1::Syncs& reply, GroupBy by) {
  ModelReport report;
  for (const auto& row : reply.sync_points()) {
    report[absl::StrCat(row.api(), "|",
                        SiteText(row.site(), row.stack(), row.native_stack(), by))] = {
        row.calls(), row.blocked_ns(), row.max_ns(), row.bytes(), 0, 0, 0, 0};
  }
  return report;
}

ModelReport FromReply(const lull::v1::GcPauses& reply, GroupBy by) {
  ModelReport report;
  for (const auto& row : reply.gc_pauses()) {
    report[absl::StrCat(row.generation(), "|",
                        SiteText(row.site(), row.stack(), {}, by))] = {
        row.count(),
        row.total_ns(),
        row.max_ns(),
        row.collected(),
        row.uncollectable(),
        0,
        0,
        0};
  }
  return report;
}

ModelReport FromReply(const lull::v1::HostWaits& reply, GroupBy by) {
  ModelReport report;
  for (const auto& row : reply.host_waits()) {
    report[absl::StrCat(row.kind(), "|", SiteText(row.site(), row.stack(), {}, by))] = {
        row.count(), row.total_ns(), row.max_ns(), 0, 0, 0, 0, 0};
  }
  return report;
}

ModelReport FromReply(const lull::v1::Allocations& reply, GroupBy by) {
  ModelReport report;
  for (const auto& row : reply.allocation_sites()) {
    report[absl::StrCat(row.allocator(), "|",
                        SiteText(row.site(), row.stack(), row.native_stack(), by))] = {
        row.calls(),      row.blocked_ns(), 0, row.bytes(), 0, row.frees(),
        row.live_bytes(), row.peak_bytes()};
  }
  return report;
}

}  // namespace lull::test
