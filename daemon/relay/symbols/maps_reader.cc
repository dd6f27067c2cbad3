#include "daemon/relay/symbols/maps_reader.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "daemon/base/clock.h"
#include "daemon/base/thread.h"

namespace lull::relay {
namespace {

// An address outside of all mappings may come from a library loaded just now, or be
// nonsense.
constexpr uint64_t kAgainNs = 100'000'000;

}  // namespace

MapsReader::~MapsReader() {
  MutexLock lock(starting_);
  if (thread_.joinable()) thread_.join();
}

void MapsReader::ReadOnce() {
  Maps maps = read_();
  MutexLock lock(mutex_);
  if (!maps.empty()) found_ = last_ = std::make_shared<const Maps>(std::move(maps));
  reading_ = false;
  done_.notify_all();
}

void MapsReader::Start() {
  MutexLock starting(starting_);
  {
    MutexLock lock(mutex_);
    if (std::exchange(reading_, true)) return;
    began_ns_ = MonotonicNs();
  }
  if (thread_.joinable()) thread_.join();  // it has ended, or is about to
  try {
    thread_ = StartThread([this] {
      TakeTurnsAtOnce();  // it holds a lock of the process that it reads about
      ReadOnce();
    });
  } catch (const std::system_error&) {  // too many threads
    ReadOnce();
  }
}

void MapsReader::StartFor(absl::Span<const uint64_t> addresses) {
  {
    MutexLock lock(mutex_);
    if (reading_ || MonotonicNs() - began_ns_ < kAgainNs) return;
    if (last_ != nullptr &&
        std::all_of(addresses.begin(), addresses.end(),
                    [this](uint64_t address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                      return last_->Find(address) != nullptr;
                    })) {
      return;
    }
  }
  Start();
}

bool MapsReader::reading() const {
  MutexLock lock(mutex_);
  return reading_;
}

uint64_t MapsReader::began_ns() const {
  MutexLock lock(mutex_);
  return began_ns_;
}

std::shared_ptr<const Maps> MapsReader::Take(absl::Duration patience) {
  // An infinite patience does not fit into a time of the clock.
  const auto until = std::chrono::steady_clock::now() +
                     absl::ToChronoNanoseconds(std::min(patience, absl::Hours(24)));
  MutexLock lock(mutex_);
  while (reading_ && patience > absl::ZeroDuration() &&
         done_.wait_until(lock.native(), until) != std::cv_status::timeout) {
  }
  return std::exchange(found_, nullptr);
}

}  // namespace lull::relay
