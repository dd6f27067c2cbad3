// Exports that are under way: not too many, and none that nobody reads.
//
// An export looks at one state of the store for as long as it lasts. Meanwhile what is
// stored piles up in the store's log, and a thread of the server is taken. A client may
// stop reading (`lull export | less`): it is cut off then.
#pragma once

#include <grpcpp/server_context.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>

#include "absl/time/time.h"
#include "daemon/base/mutex.h"

namespace lull::collector {

// Thread-safe.
class ExportWatch {
 public:
  // The server has 64 threads for all calls (collector.cc).
  static constexpr size_t kMost = 8;

  // `patience`: how long a client may take for one piece.
  explicit ExportWatch(absl::Duration patience);
  ~ExportWatch();  // none is under way any more
  ExportWatch(const ExportWatch&) = delete;
  ExportWatch& operator=(const ExportWatch&) = delete;

  // One export. `watch` and `context` must outlive it.
  class Ticket {
   public:
    Ticket(ExportWatch* watch, grpc::ServerContext* context);
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    bool admitted() const { return admitted_; }  // false: there are too many
    // A piece is on its way to the client, or has been taken.
    void SetWriting(bool writing);

   private:
    friend class ExportWatch;
    ExportWatch& watch_;
    grpc::ServerContext* const context_;
    bool admitted_ = false;
    uint64_t writing_since_ns_ = 0;  // under the watch's lock; 0: it is not
  };

 private:
  void Run();

  const absl::Duration patience_;
  Mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Ticket*> tickets_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lull::collector
