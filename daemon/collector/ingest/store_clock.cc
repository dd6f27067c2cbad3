#include "daemon/collector/ingest/store_clock.h"

#include <algorithm>

#include "daemon/base/clock.h"
#include "daemon/base/clock_identity.h"

namespace lull::collector {
namespace {

constexpr uint64_t kMostBelievedNs = 7 * 86'400'000'000'000ull;

}  // namespace

HostClocks HostClocks::Now() {
  return {RealtimeNs(), BoottimeNs(), OwnClock().boot_id};
}

StoreClock::StoreClock(const storage::ClockRow& last, uint64_t newest_ns,
                       const HostClocks& host)
    : row_(last) {
  if (row_.now_ns == 0) {
    row_.now_ns = row_.realtime_ns = newest_ns != 0 ? newest_ns : host.realtime_ns;
  }
  Advance(host);
}

uint64_t StoreClock::Advance(const HostClocks& host) {
  const bool same_boot = !host.boot_id.empty() && host.boot_id == row_.boot_id &&
                         host.boottime_ns >= row_.boottime_ns;
  if (same_boot) {
    row_.now_ns += host.boottime_ns - row_.boottime_ns;
  } else if (host.realtime_ns > row_.realtime_ns) {
    row_.now_ns += std::min(host.realtime_ns - row_.realtime_ns, kMostBelievedNs);
  }
  row_.realtime_ns = host.realtime_ns;
  row_.boottime_ns = host.boottime_ns;
  row_.boot_id = host.boot_id;
  return row_.now_ns;
}

}  // namespace lull::collector
