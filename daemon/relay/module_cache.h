// The files that symbols are read from, each opened once for all processes of a job:
// eight ranks read libtorch's symbols once.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "daemon/relay/elf_module.h"
#include "daemon/relay/maps.h"

namespace lull::relay {

// Sorting the symbols of PyTorch's libraries takes a quarter of a second, and much
// longer on a busy machine; rings fill in less. So large files are opened on a thread
// of its own as soon as they are mapped, long before the first stack needs them.
//
// All calls come from one thread.
class ModuleCache {
 public:
  ModuleCache() = default;
  ~ModuleCache();
  ModuleCache(const ModuleCache&) = delete;
  ModuleCache& operator=(const ModuleCache&) = delete;

  // Known by device independent identity (inode, path). `pid`: whose mount namespace to
  // look in first; the plain path comes second. nullptr when the file cannot be read or
  // is not the one that was mapped. Waits for a file that is being opened.
  std::shared_ptr<ElfModule> Get(pid_t pid, const Mapping& mapping);

  // Get() would return at once.
  bool Has(const Mapping& mapping);

  // Has the large files of a process opened in the background. Cheap for those that
  // are known.
  void Prepare(pid_t pid, const Maps& maps);

 private:
  using Key = std::pair<uint64_t, std::string>;
  enum class State { kWaiting, kOpening, kOpened };
  struct Entry {
    State state = State::kWaiting;
    pid_t pid = 0;
    Mapping mapping;
    std::shared_ptr<ElfModule> module;
  };

  void OpenWaiting();
  void Open(Entry* entry, std::unique_lock<std::mutex>* lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Entry> entries_;  // references stay valid
  std::deque<Entry*> waiting_;
  bool stopping_ = false;
  std::thread opener_;  // started with the first large file
};

}  // namespace lull::relay
