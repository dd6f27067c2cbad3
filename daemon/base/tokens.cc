#include "daemon/base/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {
namespace {

constexpr size_t kMaxFile = 16 << 10;
constexpr size_t kRandomBytes = 32;
constexpr Right kRights[] = {Right::kWrite, Right::kRead, Right::kControl};

std::string* Field(Tokens* tokens, std::string_view name) {
  if (name == NameOf(Right::kWrite)) return &tokens->write;
  if (name == NameOf(Right::kRead)) return &tokens->read;
  return name == NameOf(Right::kControl) ? &tokens->control : nullptr;
}

absl::Status NoTokenFile(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat("the token file ", path,
                   " must hold a line \"write TOKEN\", \"read TOKEN\" or \"control "
                   "TOKEN\" for each right that it gives, or one token alone"));
}

// What a header of HTTP can carry.
bool IsToken(absl::string_view text) {
  for (char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return !text.empty();
}

absl::StatusOr<Tokens> Parse(const std::string& path, absl::string_view text) {
  Tokens tokens;
  std::string alone;
  size_t lines = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = line.substr(0, line.find('#'));
    std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    ++lines;
    if (!IsToken(words.back()) || words.size() > 2) return NoTokenFile(path);
    if (words.size() == 1) {
      alone = std::string(words[0]);
      continue;
    }
    std::string* field = Field(&tokens, {words[0].data(), words[0].size()});
    if (field == nullptr || !field->empty()) return NoTokenFile(path);
    *field = std::string(words[1]);
  }
  if (!alone.empty() && lines == 1) tokens = {alone, alone, alone};
  if (tokens.empty() || (!alone.empty() && lines > 1)) return NoTokenFile(path);
  return tokens;
}

absl::Status CheckOwner(const std::string& path, const struct stat& info) {
  if (S_ISREG(info.st_mode) && (info.st_mode & 077) == 0 &&
      (info.st_uid == geteuid() || info.st_uid == 0)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the token file ", path,
      " must be a file of your own that nobody else can read; run: chmod 600 ", path));
}

absl::StatusOr<std::string> NewFileText() {
  std::string text =
      "# Tokens of a collector of lull: who has a line may do what it says. Hand out\n"
      "# single lines, in files of mode 0600. Without this file new ones are made.\n";
  for (Right right : kRights) {
    LULL_ASSIGN_OR_RETURN(std::string token, RandomToken());
    absl::StrAppend(&text, NameOf(right), " ", token, "\n");
  }
  return text;
}

// Whole or not at all, and never over one that is there.
absl::Status MakeTokenFile(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::exists(folder, error)) {
    LULL_RETURN_IF_ERROR(MakePrivateDirectory(folder.string()));
  }
  LULL_ASSIGN_OR_RETURN(std::string text, NewFileText());
  std::string fresh = absl::StrCat(path, ".new.", getpid());
  unlink(fresh.c_str());
  UniqueFd fd(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot write ", fresh));
  bool written =
      write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  bool done = written && (link(fresh.c_str(), path.c_str()) == 0 || errno == EEXIST);
  absl::Status status =
      done ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  unlink(fresh.c_str());
  return status;
}

}  // namespace

const char* NameOf(Right right) {
  switch (right) {
    case Right::kWrite:
      return "write";
    case Right::kRead:
      return "read";
    case Right::kControl:
      break;
  }
  return "control";
}

const std::string& Tokens::For(Right right) const {
  return right == Right::kWrite ? write : right == Right::kRead ? read : control;
}

absl::StatusOr<Tokens> ReadTokenFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot read the token file ", path));
  }
  LULL_RETURN_IF_ERROR(CheckOwner(path, info));
  std::string text(kMaxFile + 1, '\0');
  ssize_t size = pread(fd.get(), text.data(), text.size(), 0);
  if (size < 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot read the token file ", path));
  }
  if (static_cast<size_t>(size) > kMaxFile) return NoTokenFile(path);
  text.resize(static_cast<size_t>(size));
  return Parse(path, text);
}

absl::StatusOr<Tokens> ReadOrMakeTokenFile(const std::string& path) {
  absl::StatusOr<Tokens> tokens = ReadTokenFile(path);
  if (!absl::IsNotFound(tokens.status())) return tokens;
  LULL_RETURN_IF_ERROR(MakeTokenFile(path));
  return ReadTokenFile(path);
}

absl::StatusOr<std::string> RandomToken() {
  char bytes[kRandomBytes];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
    return ErrnoStatus(errno, "cannot get random bytes for a token");
  }
  return absl::BytesToHexString(absl::string_view(bytes, sizeof(bytes)));
}

bool SameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^
                                        static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

}  // namespace lull
