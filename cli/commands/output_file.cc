#include "cli/commands/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/base/output.h"
#include "daemon/base/status.h"
#include "daemon/base/write_all.h"

namespace lull {

OutputFile::OutputFile(const std::string& path, bool as_it_is)
    : path_(path == "-" ? "" : path),
      may_pack_(!as_it_is && absl::EndsWith(path_, ".gz")),
      target_(path_) {
  using std::filesystem::file_type;
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(path_, error);
  const file_type kind = there.type();
  // Also what cannot be looked at: opening it says why.
  in_place_ =
      path_.empty() || (kind != file_type::not_found && kind != file_type::regular);
  if (in_place_) return;
  if (kind == file_type::regular)
    mode_ = static_cast<unsigned>(there.permissions()) & 07777;
  std::filesystem::path aim = path_;
  // It may lead to what is not there yet.
  if (std::filesystem::is_symlink(aim, error)) {
    aim = aim.parent_path() / std::filesystem::read_symlink(aim, error);
  }
  const auto target = std::filesystem::weakly_canonical(aim, error);
  if (!error) target_ = target.string();
}

OutputFile::~OutputFile() {
  if (packing_) deflateEnd(&stream_);
  if (has_name_) unlink(Unfinished().c_str());
}

std::string OutputFile::Name() const { return path_.empty() ? "stdout" : path_; }

std::string OutputFile::Unfinished() const {
  return absl::StrCat(target_, ".unfinished-", getpid());
}

UniqueFd OutputFile::OpenUnfinished() {
  std::string folder = std::filesystem::path(target_).parent_path().string();
  if (folder.empty()) folder = ".";
  UniqueFd nameless(open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
  if (nameless) return nameless;
  UniqueFd named(
      open(Unfinished().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  has_name_ = static_cast<bool>(named);
  return named;
}

absl::Status OutputFile::Open() {
  if (path_.empty()) {
    fd_ = UniqueFd(dup(STDOUT_FILENO));
    return absl::OkStatus();
  }
  if (in_place_) {
    fd_ = UniqueFd(open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  } else {
    fd_ = OpenUnfinished();
  }
  if (!fd_) return ErrnoStatus(errno, path_);
  LULL_RETURN_IF_ERROR(KeepMode());
  if (!may_pack_) return absl::OkStatus();
  // Quick: a trace packs 15 times as it is.
  packing_ =
      deflateInit2(&stream_, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
  return packing_ ? absl::OkStatus() : absl::ResourceExhaustedError("no memory");
}

// Before there is anything in it that others might read.
absl::Status OutputFile::KeepMode() {
  struct stat made = {};
  if (mode_ == 0 || (fstat(fd_.get(), &made) == 0 && (made.st_mode & 07777) == mode_) ||
      fchmod(fd_.get(), mode_) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, absl::StrCat(path_, ": cannot keep its mode"));
}

absl::Status OutputFile::Write(const std::string& bytes) {
  return packing_ ? Pack(bytes, Z_NO_FLUSH)
                  : Annotate(WriteAll(fd_.get(), bytes), Name());
}

absl::Status OutputFile::Finish() {
  if (packing_) LULL_RETURN_IF_ERROR(Pack("", Z_FINISH));
  return in_place_ ? absl::OkStatus() : Annotate(TakeName(), path_);
}

absl::Status OutputFile::TakeName() {
  if (!has_name_) {
    const std::string self = absl::StrCat("/proc/self/fd/", fd_.get());
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, Unfinished().c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
      return ErrnoStatus(errno, "cannot give it its name");
    }
    has_name_ = true;
  }
  // What a remote file system could not write it may say only here.
  if (close(fd_.release()) != 0) return ErrnoStatus(errno, "cannot write");
  if (rename(Unfinished().c_str(), target_.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot give it its name");
  }
  has_name_ = false;
  return absl::OkStatus();
}

absl::Status OutputFile::Pack(const std::string& bytes, int flush) {
  std::string copy = bytes;  // zlib wants it not const
  std::string packed(64 << 10, '\0');
  stream_.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream_.avail_in = static_cast<uInt>(copy.size());
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream_.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream_, flush);
    LULL_RETURN_IF_ERROR(Annotate(
        WriteAll(fd_.get(), {packed.data(), packed.size() - stream_.avail_out}),
        Name()));
  } while (stream_.avail_out == 0);
  return absl::OkStatus();
}

absl::Status WriteWhole(const std::string& path, const std::string& text) {
  if (path == "-") {
    Print(text);
    return absl::OkStatus();
  }
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a folder; name a file in it"));
  }
  OutputFile file(path, /*as_it_is=*/true);
  LULL_RETURN_IF_ERROR(file.Open());
  LULL_RETURN_IF_ERROR(file.Write(text));
  return file.Finish();
}

}  // namespace lull
