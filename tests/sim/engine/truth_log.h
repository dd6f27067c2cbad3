// Writer of the ground-truth log (truth_format.h). Any thread; no lock on the
// way of a record. Inert unless LULL_SIM_LOG names a path: "%p" in it is the
// process id, without "%p" the id is appended (PATH.PID). An executable that
// replaces another in the same process gets PATH.PID.1, and so on.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/sim/engine/truth_format.h"

namespace lull::sim {

class TruthLog {
 public:
  // Opens the log that the environment asks for. False if it cannot.
  bool open_from_environment();
  bool open(std::string path);

  bool enabled() const { return base_ != nullptr; }

  // Id of a name; the text is written once. Equal texts have equal ids.
  uint32_t name(std::string_view text);

  // Writes `record` and returns where it lies, or null (inert, or full).
  TruthRecord* append(const TruthRecord& record);

  // In a fork child: forgets the parent's file without touching it.
  void abandon();

 private:
  TruthRecord* slot();
  bool take_chunk();
  bool grow(uint64_t chunk);

  std::string path_;
  char* base_ = nullptr;
  std::atomic<uint64_t> generation_{1};  // chunks of an older file are not ours
  std::atomic<uint64_t> file_chunks_{0};
  std::mutex mutex_;
  std::unordered_map<std::string, uint32_t> names_;
};

}  // namespace lull::sim
