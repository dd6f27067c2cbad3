#include "daemon/relay/samples/walk.h"

#include <algorithm>

namespace lull::relay {

bool Agree(const StackWalk& other, StackWalk* walk) {
  std::vector<SeenFrame>& a = walk->frames;
  const std::vector<SeenFrame>& b = other.frames;
  bool same = a.size() == b.size() && walk->truncated == other.truncated;
  for (size_t i = 0; same && i < a.size(); ++i) {
    same = a[i].address == b[i].address && a[i].code == b[i].code &&
           (i == 0 || a[i].lasti == b[i].lasti);
  }
  if (same) return true;
  // The outermost frame that both have: the last one of either, where neither has more
  // frames than are kept.
  size_t end_a = a.size(), end_b = b.size();
  if (walk->truncated || other.truncated) {
    walk->truncated = true;
    auto in_a = [&](uint64_t address) {
      return static_cast<size_t>(
          std::find_if(a.begin(), a.end(),
                       [&](const SeenFrame& f) { return f.address == address; }) -
          a.begin());
    };
    while (end_b > 0 && in_a(b[end_b - 1].address) == a.size()) --end_b;
    end_a = end_b == 0 ? 0 : in_a(b[end_b - 1].address) + 1;
  }
  size_t kept = 0;
  while (kept < std::min(end_a, end_b) && a[end_a - 1 - kept] == b[end_b - 1 - kept]) {
    ++kept;
  }
  a.resize(end_a);
  a.erase(a.begin(), a.begin() + static_cast<ptrdiff_t>(end_a - kept));
  return false;
}

void MarkTorn(std::vector<StackWalk>* walks, Callees* callees) {
  for (const StackWalk& walk : *walks) {
    for (size_t i = 0; i + 1 < walk.frames.size(); ++i) {
      callees->Add(walk.frames[i].address);
    }
  }
  for (StackWalk& walk : *walks) {
    walk.torn = walk.torn || (!walk.truncated && !walk.frames.empty() &&
                              callees->Has(walk.frames.back().address));
  }
}

}  // namespace lull::relay
