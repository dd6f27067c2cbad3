// An interpreter that is bytes of this very process: what the memory of a target may
// hold, sense or not. It is read like any other target's, by this process's own id.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/relay/samples/layout.h"

namespace lull::relay {

class FakePython {
 public:
  explicit FakePython(const abi::PythonLayout& layout);
  FakePython(const FakePython&) = delete;
  FakePython& operator=(const FakePython&) = delete;

  uint64_t AddCode(const std::string& function, const std::string& file, int first_line,
                   const std::string& line_table = "");
  // Another PyThreadState of the same thread, without frames.
  uint64_t AddThread();
  // Innermost first: code objects and f_lasti. From 3.11 on they lie in a chunk,
  // `apart` bytes from one to the next.
  void SetStack(const std::vector<std::pair<uint64_t, int32_t>>& frames,
                size_t apart = kFrameBytes);
  // Another call in the place of a frame of that stack; 0: the innermost.
  void SetFrame(size_t index, uint64_t code, int32_t lasti);
  // f_lasti of the innermost frame.
  void GoTo(int32_t lasti);
  // Line table of a code object.
  void SetLineTable(uint64_t code, uint64_t bytes);
  uint64_t AddBytes(const std::string& data);

  // Where a frame of that stack lies, and the word on the C stack that leads to it
  // (3.11 and 3.12).
  uint64_t frame(size_t index) const { return frames_[index]; }
  uint64_t link() const { return cframe_ + static_cast<uint64_t>(at_.cframe_frame); }

  const FrameLayout& layout() const { return layout_; }
  uint64_t state() const { return state_; }
  uint64_t thread() const { return kThread; }
  // All that was made so far, to be spoiled.
  char* memory() { return memory_.data(); }
  size_t used() const { return used_; }

 private:
  static constexpr size_t kFrameBytes = 128;
  static constexpr uint64_t kThread = 0x7f1234567000;

  uint64_t Allocate(size_t bytes);
  uint64_t AddText(const std::string& text);
  template <typename T>
  static void Put(uint64_t object, int offset, T value);

  const abi::PythonLayout at_;
  std::vector<char> memory_;
  size_t used_ = 0;
  FrameLayout layout_;
  uint64_t state_ = 0;
  uint64_t cframe_ = 0;
  std::vector<uint64_t> frames_;  // innermost first
};

}  // namespace lull::relay
