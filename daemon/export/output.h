// Bytes on their way to whoever asked for them, in pieces: nothing grows with the file.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lull::exports {

// Takes the next bytes of the file. An error ends the export with it.
using Sink = std::function<absl::Status(absl::string_view bytes)>;

class Output {
 public:
  static constexpr size_t kPiece = 1 << 20;

  explicit Output(Sink sink) : sink_(std::move(sink)) {
    bytes_.reserve(kPiece + (kPiece >> 2));
  }

  // Writers append here, and say when there may be a piece.
  std::string& bytes() { return bytes_; }
  void Checkpoint() {
    if (bytes_.size() >= kPiece) Flush();
  }
  // After an error what comes is thrown away.
  void Flush() {
    if (status_.ok() && !bytes_.empty()) status_ = sink_(bytes_);
    bytes_.clear();
  }
  const absl::Status& status() const { return status_; }

 private:
  const Sink sink_;
  std::string bytes_;
  absl::Status status_;
};

}  // namespace lull::exports
