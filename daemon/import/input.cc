#include "daemon/import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace lull::imports {
namespace {

constexpr size_t kBuffer = 256 << 10;

struct Opened {
  UniqueFd fd;
  uint64_t bytes = 0;
};

absl::StatusOr<Opened> OpenFile(const std::string& path) {
  // A pipe would be waited for.
  Opened opened;
  opened.fd = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened.fd) return ErrnoStatus(errno, path);
  struct stat info;
  if (fstat(opened.fd.get(), &info) != 0) return ErrnoStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a file"));
  }
  opened.bytes = static_cast<uint64_t>(info.st_size);
  return opened;
}

}  // namespace

Input::Input(UniqueFd fd, uint64_t file_bytes, Progress progress)
    : fd_(std::move(fd)),
      file_bytes_(file_bytes),
      progress_(std::move(progress)),
      buffer_(kBuffer + 1) {}

Input::~Input() = default;

absl::StatusOr<std::unique_ptr<Input>> Input::Open(const std::string& path,
                                                   Progress progress) {
  LULL_ASSIGN_OR_RETURN(Opened opened, OpenFile(path));
  return std::unique_ptr<Input>(
      new Input(std::move(opened.fd), opened.bytes, std::move(progress)));
}

std::unique_ptr<Input> Input::OfBytes(std::string bytes) {
  std::unique_ptr<Input> input(new Input(UniqueFd(), bytes.size(), {}));
  input->memory_ = std::move(bytes);
  return input;
}

// The next bytes as they lie there; "" at the end.
absl::StatusOr<std::string_view> Input::ReadFile() {
  size_t size = 0;
  if (fd_) {
    const ssize_t got = TEMP_FAILURE_RETRY(read(fd_.get(), buffer_.data(), kBuffer));
    if (got < 0) return ErrnoStatus(errno, "cannot read");
    size = static_cast<size_t>(got);
  } else {
    size = std::min(kBuffer, memory_.size() - memory_at_);
    memcpy(buffer_.data(), memory_.data() + memory_at_, size);
    memory_at_ += size;
  }
  buffer_[size] = '\0';
  read_bytes_ += size;
  if (progress_ && !progress_(read_bytes_, file_bytes_)) {
    return absl::CancelledError("not read to its end");
  }
  return std::string_view(buffer_.data(), size);
}

bool Input::Fill() {
  taken_ += static_cast<uint64_t>(end_ - begin_);
  begin_ = at_ = end_ = nullptr;
  if (!status_.ok()) return false;
  absl::StatusOr<std::string_view> next =
      unpacker_ != nullptr ? unpacker_->Next() : ReadFile();
  if (!std::exchange(started_, true) && next.ok() && next->starts_with("\x1f\x8b")) {
    auto unpacker = Unpacker::Start(
        [this, first = *next]() mutable -> absl::StatusOr<std::string_view> {
          if (!first.empty()) return std::exchange(first, {});
          return ReadFile();
        });
    if (unpacker.ok()) {
      unpacker_ = *std::move(unpacker);
      next = unpacker_->Next();
    } else {
      next = unpacker.status();
    }
  }
  if (!next.ok()) status_ = next.status();
  if (!next.ok() || next->empty()) return false;
  begin_ = at_ = next->data();
  end_ = begin_ + next->size();
  return true;
}

absl::StatusOr<std::string> HashOfFile(const std::string& path) {
  LULL_ASSIGN_OR_RETURN(Opened opened, OpenFile(path));
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  EVP_MD_CTX_free);
  if (context == nullptr ||
      EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return absl::InternalError("SHA-256 is not to be had");
  }
  std::vector<char> buffer(kBuffer);
  while (true) {
    const ssize_t got =
        TEMP_FAILURE_RETRY(read(opened.fd.get(), buffer.data(), buffer.size()));
    if (got < 0) return ErrnoStatus(errno, path);
    if (got == 0) break;
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  return std::string(reinterpret_cast<const char*>(digest.data()), size);
}

}  // namespace lull::imports
