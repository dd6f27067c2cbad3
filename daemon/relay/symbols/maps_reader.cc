#include "daemon/relay/symbols/maps_reader.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace lull::relay {

MapsReader::~MapsReader() {
  if (thread_.joinable()) thread_.join();
}

void MapsReader::ReadOnce() {
  Maps maps = read_();
  MutexLock lock(mutex_);
  if (!maps.empty()) found_ = std::move(maps);
  reading_ = false;
  done_.notify_all();
}

void MapsReader::Start() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(reading_, true)) return;
  }
  if (thread_.joinable()) thread_.join();  // it has ended, or is about to
  // Signals are for the other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { ReadOnce(); });
  } catch (const std::system_error&) {  // too many threads
    ReadOnce();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool MapsReader::reading() {
  MutexLock lock(mutex_);
  return reading_;
}

std::optional<Maps> MapsReader::Take(absl::Duration patience) {
  // An infinite patience does not fit into a time of the clock.
  const auto until = std::chrono::steady_clock::now() +
                     absl::ToChronoNanoseconds(std::min(patience, absl::Hours(24)));
  MutexLock lock(mutex_);
  while (reading_ && patience > absl::ZeroDuration() &&
         done_.wait_until(lock.native(), until) != std::cv_status::timeout) {
  }
  return std::exchange(found_, std::nullopt);
}

}  // namespace lull::relay
