// The files that a symbol reader reads, each opened once, by the numbers that the relay
// gave them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "daemon/base/mutex.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/symbol_reader_main.h"

namespace lull::relay {

// Sorting the symbols of PyTorch's libraries takes a quarter of a second, and much
// longer on a busy machine; rings fill in less. So large files are opened on a thread
// of its own as soon as they are mapped, long before the first stack needs them.
//
// All calls come from one thread.
class OpenedModules {
 public:
  // `read` is called on the other thread for each file that was prepared.
  OpenedModules(OpenModule open, std::function<void(uint32_t)> read);
  ~OpenedModules();
  OpenedModules(const OpenedModules&) = delete;
  OpenedModules& operator=(const OpenedModules&) = delete;

  // The file of a number that is new; one that is known stays as it is.
  void Add(uint32_t number, UniqueFd file);
  // Has a file opened in the background.
  void Prepare(uint32_t number);
  // nullptr for a number or a file that is none. Waits for one that is being opened.
  const ElfModule* Get(uint32_t number);

 private:
  enum class State { kWaiting, kOpening, kOpened };
  struct Entry {
    State state = State::kWaiting;
    UniqueFd file;
    std::shared_ptr<ElfModule> module;
  };

  void OpenWaiting();
  void Open(Entry* entry, MutexLock* lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OpenModule open_;
  const std::function<void(uint32_t)> read_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // references stay valid
  std::deque<uint32_t> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread opener_;
};

}  // namespace lull::relay
