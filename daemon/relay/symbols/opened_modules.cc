#include "daemon/relay/symbols/opened_modules.h"

#include <utility>

namespace lull::relay {

OpenedModules::OpenedModules(OpenModule open, std::function<void(uint32_t)> read)
    : open_(open), read_(std::move(read)), opener_([this] { OpenWaiting(); }) {}

OpenedModules::~OpenedModules() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  opener_.join();
}

void OpenedModules::Add(uint32_t number, UniqueFd file) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto [it, added] = entries_.try_emplace(number);
  if (added) it->second.file = std::move(file);
}

void OpenedModules::Prepare(uint32_t number) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(number);
  }
  changed_.notify_all();
}

const ElfModule* OpenedModules::Get(uint32_t number) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto it = entries_.find(number);
  if (it == entries_.end()) return nullptr;
  Entry& entry = it->second;
  // One that waits for its turn is not waited for.
  if (entry.state == State::kWaiting) Open(&entry, &lock);
  changed_.wait(lock, [&] { return entry.state == State::kOpened; });
  return entry.module.get();
}

void OpenedModules::OpenWaiting() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    uint32_t number = waiting_.front();
    waiting_.pop_front();
    auto it = entries_.find(number);
    if (it == entries_.end()) continue;
    if (it->second.state == State::kWaiting) Open(&it->second, &lock);
    lock.unlock();
    read_(number);
    lock.lock();
  }
}

// Without the lock while the file is read.
void OpenedModules::Open(Entry* entry, std::unique_lock<std::mutex>* lock) {
  entry->state = State::kOpening;
  lock->unlock();
  std::shared_ptr<ElfModule> module = open_(std::move(entry->file));
  lock->lock();
  entry->module = std::move(module);
  entry->state = State::kOpened;
  changed_.notify_all();
}

}  // namespace lull::relay
