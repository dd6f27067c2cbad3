// Events and definitions of one process into batches.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "daemon/import/api_names.h"
#include "daemon/import/stack_table.h"
#include "daemon/import/translate.h"
#include "daemon/relay/read/batch_builder.h"
#include "preload/abi/event.h"

namespace lull::imports {

class EventWriter {
 public:
  // All must outlive this.
  EventWriter(Trace& trace, uint64_t key, ApiTable& apis, const BatchSink& sink);

  StackTable& python() { return python_; }
  StackTable& operators() { return operators_; }

  // Refs of stacks for events; defined where they are new.
  uint32_t PythonRef(uint32_t node) { return Ref(python_, node, &python_told_); }
  uint32_t NativeRef(uint32_t node) { return Ref(operators_, node, &native_told_); }
  uint32_t KernelRef(uint32_t kernel);
  uint32_t StreamRef(uint32_t stream);
  uint16_t Api(uint32_t name, CallKind kind);

  void Write(const abi::Event& event, uint32_t tid);
  // A look at a thread, of the ring of what no process tells of itself.
  void WriteSample(const abi::Event& event, uint32_t tid);

  bool full() const;
  size_t stacks() const { return python_.size() + operators_.size(); }
  uint64_t events() const { return next_ + next_sample_; }
  // The batch goes, and says no more than the one before of what has been written.
  absl::Status SendPart() { return Flush(marked_ns_); }
  // All that ended before `time_ns` has been written; the batch goes.
  absl::Status Send(uint64_t time_ns);
  absl::Status SendEnd(uint64_t end_ns, const lull::v1::ProcessInfo& process);

 private:
  struct Told {
    std::vector<bool> stacks;
    // By place: the number of its frame in this batch, and 1; 0: it has none yet.
    std::vector<uint32_t> frames;
  };

  uint32_t Ref(const StackTable& table, uint32_t node, Told* told);
  absl::Status Flush(uint64_t time_ns);
  void DefineDevices();

  Trace& trace_;
  const uint64_t key_;
  ApiTable& apis_;
  const BatchSink& sink_;
  relay::BatchBuilder batch_;
  StackTable python_{/*native=*/false};
  StackTable operators_{/*native=*/true};
  Told python_told_, native_told_;
  std::vector<uint32_t> places_;  // of the stack that is being told
  std::vector<bool> kernels_defined_, streams_defined_;
  std::vector<uint16_t> api_of_name_;
  uint64_t next_ = 0;
  uint64_t next_sample_ = 0;
  uint64_t marked_ns_ = 0;
  uint64_t calls_ = 0;
  uint64_t tensors_ = 0;
};

}  // namespace lull::imports
