// A client of the simulated CUPTI: what a profiler does, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/sim/control.h"
#include "tests/sim/cupti/records.h"
#include "tests/sim/engine/op.h"
#include "tests/sim/engine/truth_format.h"
#include "tests/sim/runtime/link.h"

namespace lull::sim::cupti {

inline constexpr size_t kBuffer = 64 << 10;
inline constexpr int64_t kMicro = 1'000;
inline constexpr int64_t kMilli = 1'000'000;

// clang-format off
#define SIM_CUPTI_FUNCTIONS(X) \
  X(cuptiGetVersion, (uint32_t*)) \
  X(cuptiGetTimestamp, (uint64_t*)) \
  X(cuptiGetResultString, (int, const char**)) \
  X(cuptiGetLastError, ()) \
  X(cuptiGetStreamIdEx, (const void*, const void*, uint8_t, uint32_t*)) \
  X(cuptiGetContextId, (const void*, uint32_t*)) \
  X(cuptiGetDeviceId, (const void*, uint32_t*)) \
  X(cuptiSetThreadIdType, (int)) \
  X(cuptiFinalize, ()) \
  X(cuptiSubscribe, (void**, void (*)(void*, uint32_t, uint32_t, const void*), void*)) \
  X(cuptiUnsubscribe, (void*)) \
  X(cuptiEnableCallback, (uint32_t, void*, uint32_t, uint32_t)) \
  X(cuptiGetCallbackName, (uint32_t, uint32_t, const char**)) \
  X(cuptiActivityRegisterCallbacks, (void (*)(uint8_t**, size_t*, size_t*), void (*)(void*, uint32_t, uint8_t*, size_t, size_t))) \
  X(cuptiActivityEnable, (uint32_t)) \
  X(cuptiActivityEnableAndDump, (uint32_t)) \
  X(cuptiActivityDisable, (uint32_t)) \
  X(cuptiActivityEnableRuntimeApi, (uint32_t, uint8_t)) \
  X(cuptiActivityEnableDriverApi, (uint32_t, uint8_t)) \
  X(cuptiActivityEnableAllSyncRecords, (uint8_t)) \
  X(cuptiActivityFlushAll, (uint32_t)) \
  X(cuptiActivityFlushPeriod, (uint32_t)) \
  X(cuptiActivityGetNextRecord, (uint8_t*, size_t, void**)) \
  X(cuptiActivityGetNumDroppedRecords, (void*, uint32_t, size_t*)) \
  X(cuptiActivitySetAttribute, (int, size_t*, void*)) \
  X(cuptiActivityGetAttribute, (int, size_t*, void*)) \
  X(cuptiActivityRegisterTimestampCallback, (uint64_t (*)())) \
  X(cuptiActivityPushExternalCorrelationId, (uint32_t, uint64_t)) \
  X(cuptiActivityPopExternalCorrelationId, (uint32_t, uint64_t*))
// clang-format on

struct Api {
#define X(name, parameters) int(*name) parameters;
  SIM_CUPTI_FUNCTIONS(X)
#undef X
  // Null where this version of the library has none.
  int (*cuptiSubscribe_v2)(void**, void (*)(void*, uint32_t, uint32_t, const void*),
                           void*, void*);
};

// Everything that one client was given, as it lay in its buffers. The library gives on
// a thread of its own, too.
class Client {
 public:
  // Registers its callbacks; `buffer_bytes` for each buffer, 0 refuses all.
  Client(const Api& api, size_t buffer_bytes);
  ~Client();

  template <typename Record>
  std::vector<Record> records(uint32_t kind) const {
    std::vector<Record> found;
    std::lock_guard lock(mutex_);
    for (const std::string& bytes : seen_) {
      Record record{};
      if (*reinterpret_cast<const uint32_t*>(bytes.data()) != kind) continue;
      bytes.copy(reinterpret_cast<char*>(&record), sizeof record);
      found.push_back(record);
    }
    return found;
  }
  // Sizes of the records of `kind`, as the library steps over them.
  std::vector<size_t> sizes(uint32_t kind) const;
  size_t buffers_requested() const { return Get(requested_); }
  size_t buffers_returned() const { return Get(returned_); }
  std::vector<uint32_t> requesting_threads() const { return Get(requesters_); }

 private:
  static void request(uint8_t** buffer, size_t* size, size_t* max_records);
  static void complete(void*, uint32_t, uint8_t* buffer, size_t size, size_t valid);

  template <typename T>
  T Get(const T& member) const {
    std::lock_guard lock(mutex_);
    return member;
  }

  const Api& api_;
  size_t buffer_bytes_;
  mutable std::mutex mutex_;  // of all below
  std::vector<std::string> seen_;
  std::vector<uint32_t> requesters_;
  size_t requested_ = 0, returned_ = 0;
  Client* outer_;
};

// The simulated machine with a program on it, in a process of its own: nothing that a
// test does to the environment, the driver or the library reaches another.
class Machine {
 public:
  explicit Machine(int major);

  const Api& cupti;
  const Driver& cu;

  void* stream();
  int launch(void* stream, int64_t ns);
  uint64_t device_memory(size_t bytes);
  // Launches a graph of three kernels of `ns` each on a stream of its own.
  void launch_graph(int64_t ns, int times);
  int set(const char* key, const char* value);
  // Whether the library is told of the program's calls just now.
  bool observed() const;

  std::vector<TruthRecord> ops(OpKind kind) const;
  std::vector<TruthRecord> calls() const;  // the program's own

 private:
  void* function_ = nullptr;
};

using Environment = std::map<std::string, std::string>;
void on_machine(int major, const Environment& environment,
                const std::function<void(Machine&)>& body);

// Expects that the process dies by `signal` instead.
void dies_on_machine(int signal, int major, const Environment& environment,
                     const std::function<void(Machine&)>& body);

}  // namespace lull::sim::cupti
