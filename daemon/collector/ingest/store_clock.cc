#include "daemon/collector/ingest/store_clock.h"

#include <algorithm>
#include <fstream>

#include "daemon/base/clock.h"

namespace lull::collector {
namespace {

constexpr uint64_t kMostBelievedNs = 7 * 86'400'000'000'000ull;

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace

HostClocks HostClocks::Now() {
  static const std::string boot_id = BootId();
  return {RealtimeNs(), BoottimeNs(), boot_id};
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
