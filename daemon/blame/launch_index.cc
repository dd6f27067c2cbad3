#include "daemon/blame/launch_index.h"

#include <tuple>

#include "daemon/blame/instant.h"

namespace lull::blame {
namespace {

// The outermost first; the rest only makes it a total order.
bool Preferred(const ApiCall& a, const ApiCall& b) {
  return std::tie(a.start_ns, b.end_ns, a.tid, a.series) <
         std::tie(b.start_ns, a.end_ns, b.tid, b.series);
}

}  // namespace

uint32_t& LaunchIndex::Head(CorrelationId correlation) {
  // Ids come in rows: spread the rows.
  uint32_t mixed = static_cast<uint32_t>(correlation) * 0x9e3779b1u;
  return heads_[(mixed ^ mixed >> 15) & (heads_.size() - 1)];
}

void LaunchIndex::Add(const ApiCall& call) {
  int same = 0;
  for (uint32_t at = Head(call.correlation); at != kNone; at = calls_[at].next) {
    if (calls_[at].call.correlation == call.correlation && ++same == kMostOfOneId) {
      return;
    }
  }
  calls_.push_back({call, kNone, kNone});
  if (calls_.size() > heads_.size()) {
    heads_.assign(heads_.size() * 2, kNone);
    for (uint32_t i = 0; i < calls_.size(); ++i) Link(i);
  } else {
    Link(static_cast<uint32_t>(calls_.size() - 1));
  }
}

void LaunchIndex::Link(uint32_t index) {
  uint32_t& head = Head(calls_[index].call.correlation);
  calls_[index].next = head;
  head = index;
}

bool LaunchIndex::Awaited(const Entry& entry, uint64_t time_ns) const {
  if (entry.launch == kNone) {
    return Minus(time_ns, entry.call.start_ns) <= limits_.queue_ns;
  }
  return Minus(time_ns, launches_[entry.launch].latest_ns) <= limits_.patience_ns;
}

bool LaunchIndex::Fits(const Entry& entry, uint64_t start_ns) const {
  return Minus(entry.call.start_ns, start_ns) <= limits_.tolerance_ns &&
         Minus(entry.call.end_ns, start_ns) <= limits_.patience_ns &&
         Awaited(entry, start_ns);
}

uint32_t LaunchIndex::Find(CorrelationId correlation, uint64_t start_ns) const {
  uint32_t best = kNone;
  uint32_t at = const_cast<LaunchIndex*>(this)->Head(correlation);
  for (; at != kNone; at = calls_[at].next) {
    const Entry& entry = calls_[at];
    if (entry.call.correlation != correlation || !Fits(entry, start_ns)) continue;
    if (best == kNone || Preferred(entry.call, calls_[best].call)) best = at;
  }
  return best;
}

Launch* LaunchIndex::launch(uint32_t index) {
  uint32_t at = calls_[index].launch;
  return at == kNone ? nullptr : &launches_[at];
}

Launch& LaunchIndex::AddLaunch(uint32_t index) {
  calls_[index].launch = static_cast<uint32_t>(launches_.size());
  launches_.emplace_back();
  launches_.back().call = calls_[index].call;
  return launches_.back();
}

template <typename Keep>
void LaunchIndex::Rebuild(Keep keep) {
  std::vector<Launch> launches;
  size_t kept = 0;
  for (Entry entry : calls_) {
    if (!keep(entry)) continue;
    if (entry.launch != kNone) {
      launches.push_back(launches_[entry.launch]);
      entry.launch = static_cast<uint32_t>(launches.size() - 1);
    }
    calls_[kept++] = entry;
  }
  calls_.resize(kept);
  launches_ = std::move(launches);
  kept_ = kept;
  heads_.assign(heads_.size(), kNone);
  for (uint32_t i = 0; i < kept; ++i) Link(i);
}

void LaunchIndex::Prune(uint64_t time_ns) {
  // Only once there is half as much again: so each call is moved a few times at most.
  if (calls_.size() < kept_ + kept_ / 2 + 4096) return;
  Rebuild([&](const Entry& entry) { return Awaited(entry, time_ns); });
}

void LaunchIndex::DropBefore(uint64_t time_ns) {
  Rebuild([&](const Entry& entry) { return entry.call.start_ns >= time_ns; });
}

std::vector<uint64_t> LaunchIndex::Starts() const {
  std::vector<uint64_t> starts;
  starts.reserve(calls_.size());
  for (const Entry& entry : calls_) starts.push_back(entry.call.start_ns);
  return starts;
}

}  // namespace lull::blame
