#include "daemon/import/unpacker.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace lull::imports {

absl::StatusOr<std::unique_ptr<Unpacker>> Unpacker::Start(ReadPacked read) {
  auto unpacker = absl::WrapUnique(new Unpacker(std::move(read)));
  if (inflateInit2(&unpacker->inflate_, 15 + 16) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to unpack it");
  }
  unpacker->thread_ = std::thread([self = unpacker.get()] { self->Run(); });
  return unpacker;
}

Unpacker::~Unpacker() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  inflateEnd(&inflate_);
}

absl::StatusOr<std::string_view> Unpacker::Next() {
  MutexLock lock(mutex_);
  if (std::exchange(reading_, false)) {
    ++used_up_;
    changed_.notify_all();
  }
  changed_.wait(lock.native(), [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return made_ > used_up_ || ended_;
  });
  if (made_ > used_up_) {
    reading_ = true;
    const Piece& piece = pieces_[used_up_ % kPieces];
    return std::string_view(piece.bytes.data(), piece.size);
  }
  LULL_RETURN_IF_ERROR(status_);
  return std::string_view();
}

void Unpacker::Run() {
  for (size_t next = 0;; ++next) {
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return next < used_up_ + kPieces || stopped_;
      });
      if (stopped_) return;
    }
    Piece& piece = pieces_[next % kPieces];
    absl::StatusOr<size_t> size = Unpack(piece.bytes.data());
    MutexLock lock(mutex_);
    if (size.ok() && *size > 0) {
      piece.size = *size;
      piece.bytes[*size] = '\0';
      made_ = next + 1;
    } else {
      status_ = size.status();
      ended_ = true;
    }
    changed_.notify_all();
    if (ended_) return;
  }
}

// Members of a gzip file follow each other; what follows the last one must be none.
absl::StatusOr<size_t> Unpacker::Unpack(char* out) {
  while (true) {
    if (packed_.empty()) {
      LULL_ASSIGN_OR_RETURN(packed_, read_());
      if (packed_.empty() && between_members_) return 0;
      if (packed_.empty()) return absl::DataLossError("the gzip file is cut short");
    }
    if (std::exchange(between_members_, false)) inflateReset(&inflate_);
    inflate_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data()));
    inflate_.avail_in = static_cast<uInt>(packed_.size());
    inflate_.next_out = reinterpret_cast<Bytef*>(out);
    inflate_.avail_out = static_cast<uInt>(kPieceBytes);
    const int result = inflate(&inflate_, Z_NO_FLUSH);
    packed_.remove_prefix(packed_.size() - inflate_.avail_in);
    if (result == Z_STREAM_END) {
      between_members_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::DataLossError(absl::StrCat(
          "the gzip file is damaged: ",
          inflate_.msg != nullptr ? inflate_.msg : "its data cannot be unpacked"));
    }
    const size_t got = kPieceBytes - inflate_.avail_out;
    if (got > 0) return got;
  }
}

}  // namespace lull::imports
