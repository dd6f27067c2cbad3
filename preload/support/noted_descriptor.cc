#include "preload/support/noted_descriptor.h"

#include <atomic>

namespace lull {
namespace {

enum class Use : uint32_t { kFree, kTaken, kNoted };
struct Place {
  std::atomic<Use> use;
  int fd;
  FileId file;
};
constexpr int kMost = 8;
Place g_places[kMost];

}  // namespace

void NotedDescriptor::note(int fd, const FileId& file) {
  if (fd < 0 || file.inode == 0) return;  // which file it is must be known
  for (int i = 0; i < kMost; ++i) {
    Use free = Use::kFree;
    if (!g_places[i].use.compare_exchange_strong(free, Use::kTaken)) continue;
    place_ = i;
    g_places[i].fd = fd;
    g_places[i].file = file;
    g_places[i].use.store(Use::kNoted, std::memory_order_release);
    return;
  }
}

NotedDescriptor::~NotedDescriptor() {
  if (place_ >= 0) g_places[place_].use.store(Use::kFree, std::memory_order_release);
}

void close_inherited_descriptors() {
  for (Place& place : g_places) {
    if (place.use.load(std::memory_order_acquire) == Use::kNoted) {
      close_if_still(place.fd, place.file);
    }
    place.use.store(Use::kFree, std::memory_order_relaxed);
  }
}

}  // namespace lull
