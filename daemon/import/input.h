// A file as a stream of bytes, unpacked if it is gzip, with the hash of what lies on
// the disk. Bounded: five buffers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"
#include "daemon/import/unpacker.h"

namespace lull::imports {

// Called now and then with how much of the file has been read, by any one thread.
// False: no more is read, and the status is CANCELLED.
using Progress = std::function<bool(uint64_t read_bytes, uint64_t file_bytes)>;

class Input {
 public:
  // NOT_FOUND, PERMISSION_DENIED; INVALID_ARGUMENT for what is no file.
  static absl::StatusOr<std::unique_ptr<Input>> Open(const std::string& path,
                                                     Progress progress = {});
  // Reads bytes in memory; for tests.
  static std::unique_ptr<Input> OfBytes(std::string bytes);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // The next byte without taking it; -1 at the end, or after an error.
  int Peek() { return at_ < end_ || Fill() ? static_cast<unsigned char>(*at_) : -1; }
  int Take() {
    if (at_ == end_ && !Fill()) return -1;
    return static_cast<unsigned char>(*at_++);
  }
  uint64_t offset() const { return taken_ + static_cast<uint64_t>(at_ - begin_); }

  // What of the next bytes is here already, up to 256 KiB; a NUL follows it. Valid
  // until the next call of anything else.
  std::string_view Window() const { return {at_, static_cast<size_t>(end_ - at_)}; }
  // Takes so many bytes of it.
  void Skip(size_t bytes) { at_ += bytes; }

  // Why there is no more: OK at the end of the file.
  const absl::Status& status() const { return status_; }

 private:
  Input(UniqueFd fd, uint64_t file_bytes, Progress progress);
  bool Fill();
  absl::StatusOr<std::string_view> ReadFile();

  UniqueFd fd_;
  std::string memory_;  // in the place of a file
  size_t memory_at_ = 0;
  const uint64_t file_bytes_;
  const Progress progress_;
  uint64_t read_bytes_ = 0;
  absl::Status status_;

  std::vector<char> buffer_;  // one byte more than is read, for the NUL
  bool started_ = false;

  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  uint64_t taken_ = 0;  // before begin_

  std::unique_ptr<Unpacker> unpacker_;  // last: its thread reads the file
};

// SHA-256 of a file, 32 bytes. Reads all of it.
absl::StatusOr<std::string> HashOfFile(const std::string& path);

}  // namespace lull::imports
