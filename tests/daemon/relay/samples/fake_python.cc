#include "tests/daemon/relay/samples/fake_python.h"

#include <string.h>

#include <cstdlib>

namespace lull::relay {
namespace {

constexpr size_t kMemoryBytes = 256 << 10;
constexpr size_t kObjectBytes = 512;   // more than any struct takes
constexpr uint64_t kRootCFrame = 400;  // in a PyThreadState
constexpr size_t kFromHeapToStack = 4096;

}  // namespace

FakePython::FakePython(const abi::PythonLayout& layout)
    : at_(layout), memory_(kMemoryBytes) {
  const uint64_t type = Allocate(kObjectBytes);
  layout_ = FrameLayout::Of(at_, type).value();
  state_ = AddThread();
  Allocate(kFromHeapToStack);
  cframe_ = Allocate(kObjectBytes);
}

uint64_t FakePython::Allocate(size_t bytes) {
  used_ = (used_ + 15) / 16 * 16;
  if (used_ + bytes > memory_.size()) abort();
  const auto at = reinterpret_cast<uint64_t>(memory_.data() + used_);
  used_ += bytes;
  return at;
}

template <typename T>
void FakePython::Put(uint64_t object, int offset, T value) {
  memcpy(reinterpret_cast<char*>(object) + offset, &value, sizeof(value));
}

uint64_t FakePython::AddThread() {
  const uint64_t thread = Allocate(kObjectBytes);
  Put(thread, at_.tstate_thread_id, kThread);
  // One without Python leads to a word of its own.
  if (at_.cframe_frame >= 0) Put(thread, at_.tstate_frame, thread + kRootCFrame);
  return thread;
}

uint64_t FakePython::AddText(const std::string& text) {
  const uint64_t object = Allocate(kObjectBytes + text.size());
  constexpr uint32_t kCompactAscii = 1 << 2 | 1 << 5 | 1 << 6;
  Put(object, at_.str_length, static_cast<uint64_t>(text.size()));
  Put(object, at_.str_state, kCompactAscii);
  memcpy(reinterpret_cast<char*>(object) + at_.str_ascii_size, text.data(),
         text.size());
  return object;
}

uint64_t FakePython::AddBytes(const std::string& data) {
  const uint64_t object = Allocate(kObjectBytes + data.size());
  Put(object, at_.bytes_size, static_cast<uint64_t>(data.size()));
  memcpy(reinterpret_cast<char*>(object) + at_.bytes_data, data.data(), data.size());
  return object;
}

uint64_t FakePython::AddCode(const std::string& function, const std::string& file,
                             int first_line, const std::string& line_table) {
  const uint64_t name = AddText(function);
  const uint64_t filename = AddText(file);
  const uint64_t table = AddBytes(line_table);
  const uint64_t code = Allocate(kObjectBytes);
  Put(code, at_.object_type, layout_.code_type);
  Put(code, at_.code_name, name);
  Put(code, at_.code_filename, filename);
  Put(code, at_.code_line_table, table);
  Put(code, at_.code_first_line, static_cast<int32_t>(first_line));
  return code;
}

void FakePython::SetLineTable(uint64_t code, uint64_t bytes) {
  Put(code, at_.code_line_table, bytes);
}

void FakePython::SetStack(const std::vector<std::pair<uint64_t, int32_t>>& frames,
                          size_t apart) {
  constexpr size_t kHead = 32;
  const size_t bytes = kHead + (frames.size() + 1) * apart;
  const uint64_t chunk = Allocate(bytes);
  Put(chunk, abi::kChunkPrevious, uint64_t{0});
  Put(chunk, abi::kChunkSize, uint64_t{bytes});
  if (at_.tstate_chunk >= 0) Put(state_, at_.tstate_chunk, chunk);
  frames_.assign(frames.size(), 0);
  uint64_t previous = 0;
  for (size_t i = frames.size(); i-- > 0;) {
    frames_[i] = chunk + kHead + (frames.size() - 1 - i) * apart;
    Put(frames_[i], at_.frame_previous, previous);
    SetFrame(i, frames[i].first, frames[i].second);
    previous = frames_[i];
  }
  if (at_.cframe_frame >= 0) {
    Put(state_, at_.tstate_frame, cframe_);
    Put(cframe_, at_.cframe_frame, previous);
  } else {
    Put(state_, at_.tstate_frame, previous);
  }
}

void FakePython::SetFrame(size_t index, uint64_t code, int32_t lasti) {
  const uint64_t frame = frames_[index];
  Put(frame, at_.frame_code, code);
  if (at_.form == abi::InstructionForm::kPointer) {
    Put(frame, at_.frame_instruction,
        code + static_cast<uint64_t>(at_.code_bytes + lasti));
  } else {
    Put(frame, at_.frame_instruction, lasti);
    const bool running = at_.form == abi::InstructionForm::kByteOffset;
    Put(frame, at_.frame_instruction + abi::kFrameStateBehindLasti, running);
  }
}

void FakePython::GoTo(int32_t lasti) {
  Put(frames_.front(), at_.frame_instruction, lasti);
}

}  // namespace lull::relay
