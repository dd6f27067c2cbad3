// From one event of torch.profiler's to a record: what is kept, under which kind, and
// what is counted as ignored.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "daemon/import/chrome_event.h"
#include "daemon/import/record.h"

namespace lull::imports {

class ChromeRows {
 public:
  // `trace` must outlive this.
  explicit ChromeRows(Trace& trace) : trace_(trace) {}

  void Add(const ChromeEvent& event);
  // After the last one. INVALID_ARGUMENT where nothing of torch.profiler was there.
  absl::Status Finish();

 private:
  void AddStretch(const ChromeEvent& event);
  void AddOfHost(const ChromeEvent& event, Record record);
  void AddOfDevice(const ChromeEvent& event, Record record);
  void AddMemory(const ChromeEvent& event);
  void Ignore(const std::string& why) { ++trace_.ignored[why]; }
  uint32_t ThreadOf(int64_t tid);
  uint32_t KernelOf(const ChromeEvent& event);
  uint32_t StreamOf(const ChromeEvent& event, uint32_t device);
  void Resolution(const ChromeEvent& event);

  Trace& trace_;
  absl::flat_hash_map<int64_t, uint32_t> threads_;  // ids that are no kernel's
  absl::flat_hash_map<std::string, uint32_t> kernels_;
  std::map<Stream, uint32_t> streams_;
  absl::flat_hash_map<int64_t, uint64_t> pids_;  // of host events
};

}  // namespace lull::imports
