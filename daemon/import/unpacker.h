// Unpacks a gzip file in a thread of its own, some pieces ahead of its reader. It is 7
// % of the processor time of an import (h100_owlv2, 56 MB of text).
#pragma once

#include <zlib.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/mutex.h"

namespace lull::imports {

class Unpacker {
 public:
  // The next bytes of the file, valid until the next call; "": there are no more. Is
  // called by the thread alone.
  using ReadPacked = std::function<absl::StatusOr<std::string_view>()>;

  // RESOURCE_EXHAUSTED: there is no memory for it.
  static absl::StatusOr<std::unique_ptr<Unpacker>> Start(ReadPacked read);
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // The next bytes, up to kPieceBytes, with a NUL behind them; valid until the next
  // call. "" at the end of the file. DATA_LOSS where it is damaged or cut short.
  absl::StatusOr<std::string_view> Next();

  static constexpr size_t kPieceBytes = 256 << 10;

 private:
  explicit Unpacker(ReadPacked read) : read_(std::move(read)) {}
  void Run();
  absl::StatusOr<size_t> Unpack(char* out);

  static constexpr size_t kPieces = 4;  // the reader's one among them
  struct Piece {
    std::vector<char> bytes = std::vector<char>(kPieceBytes + 1);
    size_t size = 0;
  };

  // Of the thread alone:
  const ReadPacked read_;
  std::string_view packed_;
  bool between_members_ = false;
  z_stream inflate_ = {};

  // Piece i lies at i % kPieces, and is the thread's until it is made, then the
  // reader's until it is used up.
  std::array<Piece, kPieces> pieces_;
  bool reading_ = false;  // the reader has a piece
  Mutex mutex_;
  std::condition_variable changed_;
  size_t made_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t used_up_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no more are made
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lull::imports
