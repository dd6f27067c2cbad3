// One call of the simulated API on the stack of its thread: its record in the
// ground-truth log, its correlation id, the time it spends on purpose.
//
// A frame is plain data, so that the runtime libraries, which do not contain the
// engine, can hold one too (control.h hands them begin and end).
#pragma once

#include <atomic>
#include <cstdint>

namespace lull::sim {

struct TruthRecord;

struct ApiFrame {
  TruthRecord* record;
  int64_t start_ns;
  int64_t blocked_before;
  uint64_t outer;  // `inner` of the thread before this call
  const char* name;
  uint16_t flags;
};

// Where a function keeps the log's id of its name.
using NameCache = std::atomic<uint32_t>;

void begin_api(ApiFrame* frame, const char* name, NameCache* cache, uint16_t flags);
void end_api(ApiFrame* frame, int result);

class ApiCall {
 public:
  ApiCall(const char* name, NameCache* cache) { begin_api(&frame_, name, cache, 0); }
  ~ApiCall() { end_api(&frame_, result_); }
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;

  int done(int result) { return result_ = result; }

  // Makes the call last at least `ns` from its start: computing, or asleep in the
  // kernel as an allocation is.
  void compute(int64_t ns) const;
  void sleep(int64_t ns) const;

 private:
  ApiFrame frame_;
  int result_ = 0;
};

}  // namespace lull::sim
