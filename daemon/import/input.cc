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
      raw_(kBuffer + 1) {}

Input::~Input() {
  if (gzip_) inflateEnd(&inflate_);
}

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

bool Input::FillRaw() {
  if (raw_done_) return false;
  ssize_t got = 0;
  if (fd_) {
    got = TEMP_FAILURE_RETRY(read(fd_.get(), raw_.data(), kBuffer));
    if (got < 0) status_ = ErrnoStatus(errno, "cannot read");
  } else {
    got = static_cast<ssize_t>(std::min(kBuffer, memory_.size() - memory_at_));
    memcpy(raw_.data(), memory_.data() + memory_at_, static_cast<size_t>(got));
    memory_at_ += static_cast<size_t>(got);
  }
  raw_at_ = 0;
  raw_end_ = got > 0 ? static_cast<size_t>(got) : 0;
  raw_[raw_end_] = '\0';
  raw_done_ = got <= 0;
  read_bytes_ += raw_end_;
  if (progress_) progress_(read_bytes_, file_bytes_);
  return !raw_done_;
}

bool Input::Fill() {
  taken_ += static_cast<uint64_t>(end_ - begin_);
  begin_ = at_ = end_ = nullptr;
  if (!status_.ok()) return false;
  if (raw_at_ == raw_end_ && !gzip_ && !FillRaw()) return false;
  if (!std::exchange(started_, true) && raw_end_ - raw_at_ >= 2 &&
      memcmp(raw_.data() + raw_at_, "\x1f\x8b", 2) == 0) {
    gzip_ = inflateInit2(&inflate_, 15 + 16) == Z_OK;
    if (!gzip_) status_ = absl::ResourceExhaustedError("no memory to unpack it");
    plain_.resize(kBuffer + 1);
  }
  if (gzip_) return Inflate();
  if (!status_.ok()) return false;
  begin_ = at_ = raw_.data() + raw_at_;
  end_ = raw_.data() + raw_end_;
  raw_at_ = raw_end_;
  return true;
}

// Members of a gzip file follow each other; what follows the last one must be none.
bool Input::Inflate() {
  while (true) {
    if (raw_at_ == raw_end_ && !FillRaw()) {
      if (status_.ok() && !between_members_) {
        status_ = absl::DataLossError("the gzip file is cut short");
      }
      return false;
    }
    if (std::exchange(between_members_, false)) inflateReset(&inflate_);
    inflate_.next_in = reinterpret_cast<Bytef*>(raw_.data() + raw_at_);
    inflate_.avail_in = static_cast<uInt>(raw_end_ - raw_at_);
    inflate_.next_out = reinterpret_cast<Bytef*>(plain_.data());
    inflate_.avail_out = static_cast<uInt>(kBuffer);
    const int result = inflate(&inflate_, Z_NO_FLUSH);
    raw_at_ = raw_end_ - inflate_.avail_in;
    if (result == Z_STREAM_END) {
      between_members_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      status_ = absl::DataLossError(absl::StrCat(
          "the gzip file is damaged: ",
          inflate_.msg != nullptr ? inflate_.msg : "its data cannot be unpacked"));
      return false;
    }
    const size_t got = kBuffer - inflate_.avail_out;
    if (got == 0) continue;
    plain_[got] = '\0';
    begin_ = at_ = plain_.data();
    end_ = plain_.data() + got;
    return true;
  }
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
