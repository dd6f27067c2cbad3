// A target's side of the shared memory, written through the ABI alone, for tests:
// what the shim does, without the shim.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/unique_fd.h"
#include "preload/abi/segment.h"

namespace lull::relay {

class FakeSegment {
 public:
  FakeSegment();
  ~FakeSegment();
  FakeSegment(const FakeSegment&) = delete;
  FakeSegment& operator=(const FakeSegment&) = delete;

  int memfd() const { return memfd_.get(); }
  char* base() const { return base_; }
  abi::SegmentView view() const { return abi::SegmentView(base_); }

  // As the shim's writer: false, and one more lost, when the ring is full.
  bool Commit(uint32_t ring, const abi::Event& event);

  abi::Ref AddCode(const std::string& file, const std::string& name, int first_line,
                   int python_minor = 11, const std::string& linetable = "");
  abi::Ref AddPythonStack(const std::vector<std::pair<abi::Ref, int32_t>>& frames);
  abi::Ref AddNativeStack(const std::vector<uint64_t>& addresses);
  abi::Ref AddScopeStack(const std::vector<abi::Ref>& names);
  abi::Ref AddBackward(abi::Ref node, abi::Ref caller, abi::Ref forward);
  abi::Ref AddText(const std::string& text);
  abi::Ref AddKernel(abi::Ref name, uint32_t grid = 1, uint32_t block = 32);
  abi::Ref AddGpuStream(uint32_t device, uint32_t context, uint32_t stream);
  abi::Ref AddGpuDevice(abi::Ref name, uint32_t device, uint32_t multiprocessors);

  // Says hello on the socket; false unless it was welcome.
  bool Handshake(const std::string& socket_path);

 private:
  void Take(uint32_t ring);
  bool OpenChunk(uint32_t ring, uint64_t number);
  abi::Ref Allocate(size_t bytes);
  template <typename T>
  abi::Ref AddFixed(abi::EntryKind kind, T entry);

  UniqueFd memfd_;
  char* base_ = nullptr;
};

// An event of `type` whose arg0 is `value`, at `start_ns`.
abi::Event MakeEvent(abi::EventType type, uint64_t value, uint64_t start_ns = 1'000);

// Hello with any memfd and contents; the Welcome's `accepted`, or -1 when the
// relay closed the connection or did not answer.
// `memory`: a second descriptor to hand over; -1: none.
int SayHello(const std::string& socket_path, int memfd, uint64_t magic,
             uint32_t version, int memory = -1);

}  // namespace lull::relay
