// One rank of one communicator.
//
// Its kernels come one after another (the engine sees to it), so at most one has begun
// and not ended. When the engine says that one begins, the rank tells the others in the
// segment that they share. Who comes last knows the end at once; all others have a
// thread that sleeps until they are told, and looks now and then whether the missing
// are alive.
#pragma once

#include <pthread.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/nccl/link.h"
#include "tests/sim/nccl/names.h"
#include "tests/sim/nccl/segment.h"

namespace lull::sim::nccl {

// ncclResult_t.
enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
};

class Communicator {
 public:
  // Ranks of the first communicator, by rank of this one.
  using Members = std::vector<uint32_t>;

  // Takes its place among the others, without waiting for them. Null: `error` says why.
  static Communicator* join(const std::string& path, uint32_t rank, Members members,
                            uint64_t parent, std::string* error);

  // Until all are there. Result; so are the others'.
  int wait_for_all();

  // A split has two parts, so that one thread may do it for several ranks. choose()
  // numbers it; collect() waits for what all have chosen and joins the new communicator
  // (null, if this rank is to be in none).
  uint64_t choose(int color, int key);
  int collect(uint64_t split, Communicator** out);

  // One kernel for all of `calls`.
  int launch(const std::vector<Call>& calls, void* stream);

  void drain() { driver_->end_exchanges(this); }
  void leave();  // for good, whatever is under way

  uint32_t rank() const { return rank_; }
  uint32_t size() const { return segment_->size(); }
  int device() const { return device_; }
  int error() const { return error_; }

 private:
  struct Plan : Exchange {
    Communicator* communicator = nullptr;
    std::string call_names;
    void* kernel = nullptr;
    uint64_t signature = 0;
    bool collective = false;
    std::vector<Call> messages;
    std::vector<Call> copies;  // that move bytes, all of them in one payload
  };
  // A kernel that has begun.
  struct Begun {
    const Plan* plan = nullptr;
    uint64_t kernel = 0, number = 0;
    int64_t start_ns = 0, duration_ns = 0, deadline_ns = 0;
    std::vector<uint64_t> messages;  // the numbers of the plan's
  };

  Communicator() = default;
  const Plan* plan(const std::vector<Call>& calls);
  static void on_begin(const Exchange* exchange, uint64_t kernel, int64_t start_ns,
                       int64_t duration_ns, Exchanged* out);
  void begin(const Plan& plan, uint64_t kernel, int64_t start_ns, int64_t duration_ns,
             Exchanged* out);
  void give(const Begun& begun) const;
  void take(const Begun& begun) const;
  bool resolve(const Begun& begun, Exchanged* out);
  bool give_up(const Begun& begun, Exchanged* out);
  const Arrival* other_side(const Begun& begun, size_t message) const;
  std::vector<uint32_t> missing(const Begun& begun) const;
  std::string trouble(const std::vector<uint32_t>& ranks, int64_t deadline_ns) const;
  void fail(int result, const std::string& why);
  void start_thread();
  void wait_for_peers();

  const Driver* driver_ = nullptr;
  std::unique_ptr<Segment> segment_;
  uint32_t rank_ = 0;
  Members members_;
  std::string member_names_;
  uint64_t id_ = 0, parent_ = 0;
  int device_ = 0;
  std::atomic<int> error_{0};
  std::atomic<bool> left_{false};
  uint64_t splits_ = 0;

  int64_t timeout_ns_ = 0;

  std::mutex plan_mutex_;  // of plans_; before the engine's lock
  std::map<std::string, std::unique_ptr<Plan>> plans_;

  std::mutex mutex_;  // of all below; after the engine's lock
  uint64_t collectives_ = 0;
  std::map<std::pair<bool, uint32_t>, uint64_t> messages_;  // sent?, with whom: so many
  std::optional<Begun> begun_;
  bool started_ = false;
  pthread_t thread_{};
  std::atomic<uint32_t> work_{0};  // futex: changes with what the thread has to do
};

// What went wrong last in this process, for people.
std::string last_error();

}  // namespace lull::sim::nccl
