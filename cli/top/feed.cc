#include "cli/top/feed.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"

namespace lull {
namespace {

// So long is the answer of a command shown.
constexpr uint64_t kAnswerNs = 6'000'000'000;

}  // namespace

TopFeed::TopFeed(Ask ask, absl::Duration interval)
    : ask_(std::move(ask)), interval_(interval) {}

TopFeed::~TopFeed() {
  {
    MutexLock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::Status TopFeed::Start(uint64_t last_ns) {
  {
    MutexLock lock(mutex_);
    last_ns_ = last_ns;
  }
  absl::Status first = Question(last_ns);
  if (!first.ok()) return first;
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void TopFeed::SetSpan(uint64_t last_ns, bool paused) {
  {
    MutexLock lock(mutex_);
    last_ns_ = last_ns;
    paused_ = paused;
    now_ = true;
  }
  changed_.notify_all();
}

void TopFeed::Do(Command command) {
  {
    MutexLock lock(mutex_);
    command_ = std::move(command);
  }
  changed_.notify_all();
}

TopFeed::Picture TopFeed::Latest() const {
  MutexLock lock(mutex_);
  const uint64_t now = MonotonicNs();
  const bool fresh = !answer_.empty() && now - answered_at_ns_ < kAnswerNs;
  return {reply_, now - told_at_ns_, fresh ? answer_ : error_};
}

absl::Status TopFeed::Question(uint64_t last_ns) {
  absl::StatusOr<v1::ReportReply> reply = ask_(last_ns);
  MutexLock lock(mutex_);
  if (!reply.ok()) {
    error_ = std::string(reply.status().message());
    return reply.status();
  }
  reply_ = std::make_shared<const v1::ReportReply>(*std::move(reply));
  told_at_ns_ = MonotonicNs();
  error_.clear();
  return absl::OkStatus();
}

void TopFeed::Run() {
  const auto interval = absl::ToChronoNanoseconds(interval_);
  while (true) {
    Command command;
    bool ask = false;
    uint64_t last_ns = 0;
    {
      MutexLock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + interval;
      while (!over_ && !now_ && !command_) {
        if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) break;
      }
      if (over_) return;
      command = std::exchange(command_, nullptr);
      // What is over does not change. Whoever asks for another part of it gets it.
      ask = std::exchange(now_, false) || (!paused_ && !reply_->job().ended());
      last_ns = last_ns_;
    }
    if (command) {
      std::string answer = command();
      MutexLock lock(mutex_);
      answer_ = std::move(answer);
      answered_at_ns_ = MonotonicNs();
    }
    // An error is in error_ by now, and the next question may go well.
    if (ask) Question(last_ns).IgnoreError();
  }
}

}  // namespace lull
