#include "daemon/relay/symbols/opened_modules.h"

#include <utility>

namespace lull::relay {

OpenedModules::OpenedModules(OpenModule open, std::function<void(uint32_t)> read)
    : open_(open), read_(std::move(read)), opener_([this] { OpenWaiting(); }) {}

OpenedModules::~OpenedModules() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  opener_.join();
}

void OpenedModules::Add(uint32_t number, UniqueFd file) {
  MutexLock lock(mutex_);
  auto [it, added] = entries_.try_emplace(number);
  if (added) it->second.file = std::move(file);
}

void OpenedModules::Prepare(uint32_t number) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back(number);
  }
  changed_.notify_all();
}

const ElfModule* OpenedModules::Get(uint32_t number) {
  MutexLock lock(mutex_);
  auto it = entries_.find(number);
  if (it == entries_.end()) return nullptr;
  Entry& entry = it->second;
  // One that waits for its turn is not waited for.
  if (entry.state == State::kWaiting) Open(&entry, &lock);
  changed_.wait(lock.native(), [&] { return entry.state == State::kOpened; });
  return entry.module.get();
}

void OpenedModules::OpenWaiting() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock.native(), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || !waiting_.empty();
    });
    if (stopping_) return;
    uint32_t number = waiting_.front();
    waiting_.pop_front();
    auto it = entries_.find(number);
    if (it == entries_.end()) continue;
    if (it->second.state == State::kWaiting) Open(&it->second, &lock);
    lock.Unlock();
    read_(number);
    lock.Lock();
  }
}

// Without the lock while the file is read.
void OpenedModules::Open(Entry* entry, MutexLock* lock) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  entry->state = State::kOpening;
  lock->Unlock();
  std::shared_ptr<ElfModule> module = open_(std::move(entry->file));
  lock->Lock();
  entry->module = std::move(module);
  entry->state = State::kOpened;
  changed_.notify_all();
}

}  // namespace lull::relay
