#include "daemon/relay/module_cache.h"

#include <sys/stat.h>
#include <sys/vfs.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lull::relay {
namespace {

// Of mapped code; the files are larger. Smaller ones are opened in no time.
constexpr uint64_t kLargeBytes = 1 << 20;
constexpr long kOverlayFs = 0x794c7630;  // its inode numbers differ from maps'

bool IsMappedFile(const std::string& path, uint64_t inode) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (info.st_ino == inode || inode == 0) return true;
  struct statfs filesystem;
  return statfs(path.c_str(), &filesystem) == 0 && filesystem.f_type == kOverlayFs;
}

std::shared_ptr<ElfModule> OpenMapped(pid_t pid, const Mapping& mapping) {
  if (!absl::StartsWith(mapping.path, "/")) return nullptr;
  std::string inside = absl::StrCat("/proc/", pid, "/root", mapping.path);
  if (IsMappedFile(inside, mapping.inode)) return ElfModule::Open(inside);
  if (IsMappedFile(mapping.path, mapping.inode)) return ElfModule::Open(mapping.path);
  return nullptr;
}

}  // namespace

ModuleCache::~ModuleCache() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (opener_.joinable()) opener_.join();
}

std::shared_ptr<ElfModule> ModuleCache::Get(pid_t pid, const Mapping& mapping) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto [it, added] = entries_.try_emplace({mapping.inode, mapping.path});
  Entry& entry = it->second;
  if (added) {
    entry.pid = pid;
    entry.mapping = mapping;
  }
  // One that waits for its turn is not waited for.
  if (entry.state == State::kWaiting) Open(&entry, &lock);
  changed_.wait(lock, [&] { return entry.state == State::kOpened; });
  return entry.module;
}

bool ModuleCache::Has(const Mapping& mapping) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = entries_.find({mapping.inode, mapping.path});
  return it != entries_.end() && it->second.state == State::kOpened;
}

void ModuleCache::Prepare(pid_t pid, const Maps& maps) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Mapping& mapping : maps.mappings()) {
    if (mapping.end - mapping.start < kLargeBytes || mapping.path.empty()) continue;
    auto [it, added] = entries_.try_emplace({mapping.inode, mapping.path});
    if (!added) continue;
    it->second.pid = pid;
    it->second.mapping = mapping;
    waiting_.push_back(&it->second);
  }
  if (waiting_.empty()) return;
  if (!opener_.joinable()) opener_ = std::thread([this] { OpenWaiting(); });
  changed_.notify_all();
}

void ModuleCache::OpenWaiting() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Entry* entry = waiting_.front();
    waiting_.pop_front();
    if (entry->state == State::kWaiting) Open(entry, &lock);
  }
}

// Without the lock while the file is read.
void ModuleCache::Open(Entry* entry, std::unique_lock<std::mutex>* lock) {
  entry->state = State::kOpening;
  lock->unlock();
  std::shared_ptr<ElfModule> module = OpenMapped(entry->pid, entry->mapping);
  lock->lock();
  entry->module = std::move(module);
  entry->state = State::kOpened;
  changed_.notify_all();
}

}  // namespace lull::relay
