// std::mutex (and not absl's: TSan sees through it) of which Clang knows what it
// guards: ABSL_GUARDED_BY and the like of absl/base/thread_annotations.h. GCC ignores
// them; every build by Clang fails (-Wthread-safety) on what is read without its lock.
//
//   Mutex mutex_;
//   int count_ ABSL_GUARDED_BY(mutex_) = 0;
#pragma once

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace lull {

class ABSL_LOCKABLE Mutex {
 private:
  friend class MutexLock;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : lock_(mutex.mutex_) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }
  // For a std::condition_variable to wait with.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace lull
