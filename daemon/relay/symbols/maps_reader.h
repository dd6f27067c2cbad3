// Reads what a process has mapped, on a thread of its own. The kernel lets nobody read
// that while the process changes its mappings: a fork of many gigabytes takes seconds.
// Whoever reads rings must not wait for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/mutex.h"
#include "daemon/relay/symbols/maps.h"

namespace lull::relay {

// Calls may come from any thread.
class MapsReader {
 public:
  // `read` returns the mappings as they are now, or none. It is called on the thread.
  explicit MapsReader(std::function<Maps()> read) : read_(std::move(read)) {}
  ~MapsReader();  // waits for a reading that is under way
  MapsReader(const MapsReader&) = delete;
  MapsReader& operator=(const MapsReader&) = delete;

  // Begins to read, unless that is under way already.
  void Start();
  // The same if what was read last does not hold all of the addresses; but not for each
  // piece of nonsense.
  void StartFor(absl::Span<const uint64_t> addresses);
  bool reading() const;
  uint64_t began_ns() const;  // when the last reading began; 0: there was none
  // What has been read since the last call, null if nothing has. Waits for a reading
  // that is under way, but not longer than `patience` (a day at most).
  std::shared_ptr<const Maps> Take(absl::Duration patience);

 private:
  void ReadOnce();

  const std::function<Maps()> read_;
  Mutex starting_;
  std::thread thread_ ABSL_GUARDED_BY(starting_);
  mutable Mutex mutex_;
  std::condition_variable done_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t began_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const Maps> found_ ABSL_GUARDED_BY(mutex_);  // and not taken
  std::shared_ptr<const Maps> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lull::relay
