// Batches that a collector has refused for good. Each is kept as it was, beside the
// spool: `refused/JOB-SEQUENCE.batch` (lull.v1.Batch); beyond kMaxRefusedBytes the
// oldest are removed. What is sent in its place gets smaller each time: first only what
// the relay says of processes, then only the end of the job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace lull::relay {

inline constexpr uint64_t kMaxRefusedBytes = 64u << 20;

class RefusedBatches {
 public:
  explicit RefusedBatches(std::string spool_directory)
      : spool_(std::move(spool_directory)) {}

  // `body`: the batch as it was. False: nothing more can be left out of it.
  bool Add(uint64_t sequence, const std::string& body);

  // What is to be sent of a batch: all of it, unless it was refused.
  std::string WhatIsLeft(uint64_t sequence, std::string body) const;

 private:
  const std::string spool_;
  std::map<uint64_t, int> times_;  // that a batch was refused, by its sequence
};

}  // namespace lull::relay
