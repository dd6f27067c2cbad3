// Whoever submits to the committer (committer.h), and hears what became of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ingest.pb.h"

namespace lull::collector {

// A stream, as the committer sees it. Called on the committer's thread; must return
// soon and not call back.
class CommitListener {
 public:
  virtual ~CommitListener() = default;
  // The runs of a batch that were not taken. Called before Committed() of the same
  // batch.
  virtual void Rejected(std::vector<lull::v1::RejectedRun> runs) = 0;
  virtual void Committed(uint64_t sequence) = 0;        // all up to here is durable
  virtual void Failed(const absl::Status& status) = 0;  // no more of this stream
  virtual void MayContinue() = 0;  // after Submit said that the queue is full

 private:
  friend class Committer;
  // For the committer alone. What such a stream still has in the queue is dropped:
  // without what failed before it, it would move marks past a hole.
  bool failed_ = false;
  size_t queued_bytes_ = 0;  // under the committer's lock
};

}  // namespace lull::collector
