// Reads what a process has mapped, on a thread of its own. The kernel lets nobody read
// that while the process changes its mappings: a fork of many gigabytes takes seconds.
// Whoever reads rings must not wait for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "daemon/base/mutex.h"
#include "daemon/relay/symbols/maps.h"

namespace lull::relay {

// All calls come from one thread.
class MapsReader {
 public:
  // `read` returns the mappings as they are now, or none. It is called on the thread.
  explicit MapsReader(std::function<Maps()> read) : read_(std::move(read)) {}
  ~MapsReader();  // waits for a reading that is under way
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;

  // Begins to read, unless that is under way already.
  void Start();
  bool reading();
  // What has been read since the last call, if anything has. Waits for a reading that
  // is under way, but not longer than `patience` (a day at most).
  std::optional<Maps> Take(absl::Duration patience);

 private:
  void ReadOnce();

  const std::function<Maps()> read_;
  Mutex mutex_;
  std::condition_variable done_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Maps> found_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lull::relay
