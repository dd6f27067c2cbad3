// A libcupti made of one process-wide object, with a control surface. Records are
// written by the test; buffers go to and fro as in the real library.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "preload/abi/segment.h"
#include "preload/cupti/types.h"
#include "preload/support/clock.h"

namespace lull::cupti {

class FakeCupti {
 public:
  // What the library says of itself; records have the sizes of that version.
  uint32_t version = 130001;
  // Function -> result; "cuptiActivityEnable:10" fails for one kind alone.
  std::map<std::string, Result> failures;
  // Its clock: at monotonic time m it shows rate * m + offset. 0: CLOCK_REALTIME.
  uint64_t rate = 0;
  int64_t offset = 0;
  size_t dropped = 0;
  // A plain flush returns nothing: there is an unfinished record in each buffer.
  bool unfinished = false;
  // What happens elsewhere before a flush returns buffers, and after.
  std::function<void()> before_flush, after_flush;
  // What happens while it is finalised.
  std::function<void()> while_finalized;

  // What was asked of it, in order: "enable 10", "flush 1", "period 100" ...
  std::vector<std::string> calls;
  std::set<uint32_t> enabled;
  BufferRequested requested = nullptr;
  BufferCompleted completed = nullptr;
  int thread_id_type = kThreadIdDefault;

  uint64_t now() const;
  // The time that its clock shows at `monotonic`.
  uint64_t at(uint64_t monotonic) const;

  // Appends a record, filled up to its size in this version; asks for a buffer first
  // where there is none or it is full. With `must_be_enabled`, only if its kind is.
  template <typename Record>
  void write(const Record& record) {
    append(&record, sizeof record, record.kind);
  }
  // A record of `size` bytes as it stands.
  void append(const void* record, size_t size, Kind kind);
  // Returns the buffer that is being filled, as the worker thread does.
  void complete();
  size_t requests() const { return requests_; }
  // Nothing is returned of what it has.
  void forget();

  static Api api();
  // Of a Tracer.
  static abi::CuptiState load(Api* api, Result*) {
    *api = FakeCupti::api();
    return abi::CuptiState::kReady;
  }
  static FakeCupti& instance();
  // The sizes of records, by kind: those of CUDA 11.8, 12.4 or 13.0.
  static size_t size_of(Kind kind, uint32_t version);

  // Functions of Api.
  Result call(const std::string& what);
  Result next_record(uint8_t* buffer, size_t valid, Activity** record) const;

 private:
  uint8_t* buffer_ = nullptr;
  size_t room_ = 0, used_ = 0;
  size_t requests_ = 0;
};

// Puts a new FakeCupti in place for the life of a test.
class FakeCuptiScope {
 public:
  FakeCuptiScope();
  ~FakeCuptiScope();
};

}  // namespace lull::cupti
