// What measuring with CUPTI takes of the program's time.
#pragma once

#include <cstdint>

namespace lull::cupti {

// Time spent in CUPTI and for it, added to the segment's gpu_self_ns; once, where one
// such stretch lies within another. Preserves errno.
class SelfTime {
 public:
  explicit SelfTime(char* segment);
  ~SelfTime();
  SelfTime(const SelfTime&) = delete;
  SelfTime& operator=(const SelfTime&) = delete;

 private:
  char* segment_;
  uint64_t start_ns_;
  bool outermost_;
  int errno_;
};

}  // namespace lull::cupti
