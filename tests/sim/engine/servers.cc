#include "tests/sim/engine/servers.h"

#include <algorithm>

namespace lull::sim {

void Servers::Server::forget_before(int64_t now) {
  size_t past = 0;
  while (past < busy.size() && busy[past].end <= now) ++past;
  // Erasing shifts the rest: only once it is worth it.
  if (past > busy.size() / 2) busy.erase(busy.begin(), busy.begin() + past);
}

int64_t Servers::Server::earliest(int64_t ready, int64_t duration) const {
  if (busy.empty() || busy.back().end <= ready) return ready;
  auto it = std::lower_bound(busy.begin(), busy.end(), ready,
                             [](const Interval& i, int64_t t) { return i.end <= t; });
  int64_t start = ready;
  for (; it != busy.end() && it->start < start + duration; ++it) {
    start = std::max(start, it->end);
  }
  return start;
}

void Servers::Server::take(int64_t start, int64_t end) {
  if (start == end) return;
  auto it = std::lower_bound(busy.begin(), busy.end(), start,
                             [](const Interval& i, int64_t t) { return i.start < t; });
  busy.insert(it, {start, end});
}

int64_t Servers::reserve(int64_t ready, int64_t duration, int64_t now) {
  Server* best = nullptr;
  int64_t best_start = 0;
  for (Server& server : servers_) {
    server.forget_before(now);
    int64_t start = server.earliest(ready, duration);
    if (best == nullptr || start < best_start) {
      best = &server;
      best_start = start;
    }
    if (start == ready) break;
  }
  best->take(best_start, best_start + duration);
  return best_start;
}

}  // namespace lull::sim
