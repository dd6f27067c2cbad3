// The answers that `lull top` shows, asked for on a thread of its own: a slow collector
// does not keep keys waiting.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/mutex.h"
#include "query.pb.h"

namespace lull {

// Thread-safe.
class TopFeed {
 public:
  // One question to the collector; called on the feed's thread alone, and once before
  // it starts. `last_ns`: how much of the job is asked for, 0 for all of it.
  using Ask = absl::AnyInvocable<absl::StatusOr<v1::ReportReply>(uint64_t last_ns)>;
  // A command beside the questions; its answer, a sentence, is shown.
  using Command = absl::AnyInvocable<std::string()>;

  TopFeed(Ask ask, absl::Duration interval);
  ~TopFeed();  // waits for the question under way

  // Asks once, and if that went well goes on every `interval`, until the job is over.
  absl::Status Start(uint64_t last_ns);

  // From now on so much of the job, unless paused; at once.
  void SetSpan(uint64_t last_ns, bool paused);
  void Do(Command command);

  struct Picture {
    std::shared_ptr<const v1::ReportReply> reply;
    uint64_t age_ns = 0;
    std::string message;  // why there is no newer one, or what a command said
  };
  Picture Latest() const;

 private:
  void Run();
  absl::Status Question(uint64_t last_ns);

  Ask ask_;
  const absl::Duration interval_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const v1::ReportReply> reply_ ABSL_GUARDED_BY(mutex_);
  uint64_t told_at_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // when reply_ came
  std::string error_ ABSL_GUARDED_BY(mutex_);        // of the last question
  std::string answer_ ABSL_GUARDED_BY(mutex_);       // of the last command
  uint64_t answered_at_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  Command command_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool now_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lull
