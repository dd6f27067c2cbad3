#include "daemon/relay/deliver/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "daemon/base/logging.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/relay/deliver/spool_format.h"
#include "daemon/relay/options.h"

namespace lull::relay {
namespace {

constexpr uint64_t kMaxFileBytes = 1u << 20;
// Counters and the end of the job must find room when events no longer do.
constexpr uint64_t kReserveBytes = 256u << 10;
// A file ends with the record that makes it long enough, and begins with a checkpoint.
constexpr size_t kMaxFileOnDisk = kMaxFileBytes + 2 * (size_t{kMaxRecordBody} + 64);

absl::StatusOr<UniqueFd> LockFile(const std::string& directory, const char* name) {
  std::string path = absl::StrCat(directory, "/", name);
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::UnavailableError(
        absl::StrCat("the spool ", directory, " belongs to a relay that is running"));
  }
  return lock;
}

std::string NameOf(uint64_t number) { return absl::StrFormat("%08d.spool", number); }

std::vector<uint64_t> NumbersOfFiles(const std::string& directory) {
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    uint64_t number = 0;
    absl::string_view digits = name;
    if (absl::ConsumeSuffix(&digits, ".spool") && absl::SimpleAtoi(digits, &number) &&
        name == NameOf(number)) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// What is there, up to `limit`: the length of a file that is damaged may be anything.
absl::StatusOr<std::string> ReadUpTo(int fd, size_t limit) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoStatus(errno, "cannot look at a spool file");
  std::string bytes(std::min(static_cast<size_t>(info.st_size), limit), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t got = TEMP_FAILURE_RETRY(
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done)));
    if (got < 0) return ErrnoStatus(errno, "cannot read a spool file");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

// To read it, and to write if `flags` say so. An empty descriptor where this is no file
// at all: a folder, a pipe.
absl::StatusOr<UniqueFd> OpenFile(const std::string& path, int flags) {
  // A pipe would be waited for.
  UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == EISDIR) return UniqueFd();
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return UniqueFd();
  return fd;
}

}  // namespace

Spool::Spool(std::string directory, uint64_t limit_bytes, UniqueFd lock)
    : directory_(std::move(directory)),
      limit_bytes_(std::max(limit_bytes, kMinSpoolBytes)),
      file_bytes_(std::min(kMaxFileBytes, limit_bytes_ / 4)),
      lock_(std::move(lock)),
      all_acknowledged_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      refused_(directory_) {}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const std::string& directory,
                                                   uint64_t limit_bytes) {
  LULL_RETURN_IF_ERROR(MakePrivateDirectory(directory));
  LULL_ASSIGN_OR_RETURN(UniqueFd lock, LockFile(directory, "lock"));
  std::unique_ptr<Spool> spool(new Spool(directory, limit_bytes, std::move(lock)));
  LULL_RETURN_IF_ERROR(spool->Recover());
  return spool;
}

std::string Spool::PathOf(uint64_t number) const {
  return absl::StrCat(directory_, "/", NameOf(number));
}

absl::Status Spool::Recover() {
  std::vector<uint64_t> numbers = NumbersOfFiles(directory_);
  // From the newest down to the first one with a whole checkpoint: that one and
  // its batches are the state; the older ones only hold batches to send.
  while (!numbers.empty()) {
    bool usable = false;
    LULL_RETURN_IF_ERROR(RecoverFile(numbers.back(), /*newest=*/true, &usable));
    uint64_t newest = numbers.back();
    numbers.pop_back();
    if (usable) break;
    LULL_RETURN_IF_ERROR(RemoveTree(PathOf(newest)));
  }
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    bool usable = false;
    LULL_RETURN_IF_ERROR(RecoverFile(*number, /*newest=*/false, &usable));
    if (!usable) LULL_RETURN_IF_ERROR(RemoveTree(PathOf(*number)));
  }
  MutexLock lock(mutex_);
  last_sequence_ = state_.last_sequence;
  acknowledged_ = slots_.empty() ? last_sequence_ : slots_.front().sequence - 1;
  TellWhetherAllAcknowledged();
  return absl::OkStatus();
}

absl::Status Spool::RecoverFile(uint64_t number, bool newest, bool* usable) {
  MutexLock lock(mutex_);
  LULL_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(PathOf(number), O_RDWR));
  if (!fd) return absl::OkStatus();
  LULL_ASSIGN_OR_RETURN(std::string bytes, ReadUpTo(fd.get(), kMaxFileOnDisk));

  std::string_view rest = bytes;
  if (rest.substr(0, kSpoolMagic.size()) != kSpoolMagic) return absl::OkStatus();
  rest.remove_prefix(kSpoolMagic.size());
  std::optional<Record> record = TakeRecord(&rest);
  if (!record || record->header.kind != RecordKind::kCheckpoint) {
    return absl::OkStatus();
  }
  if (newest && !state_.Decode(std::string(record->body))) return absl::OkStatus();

  File file{number, 0, 0, std::move(fd)};
  std::deque<Slot> slots;
  uint64_t offset = bytes.size() - rest.size();
  while ((record = TakeRecord(&rest))) {
    uint64_t end = bytes.size() - rest.size();
    file.last_sequence = record->header.sequence;
    slots.push_back(
        {record->header.sequence, number, offset, static_cast<uint32_t>(end - offset)});
    if (newest) {
      v1::Batch batch;
      if (batch.ParseFromString(std::string(record->body))) state_.Apply(batch);
    }
    offset = end;
  }
  struct stat info;
  if (fstat(file.fd.get(), &info) != 0) return ErrnoStatus(errno, PathOf(number));
  const uint64_t size = static_cast<uint64_t>(info.st_size);  // more than was read?
  if (offset < size) {
    LogWarning(absl::StrCat("cut ", size - offset, " bytes off ", PathOf(number)));
    if (ftruncate(file.fd.get(), static_cast<off_t>(offset)) != 0) {
      return ErrnoStatus(errno, "cannot cut a spool file");
    }
  }
  file.bytes = offset;
  files_.push_front(std::move(file));
  slots_.insert(slots_.begin(), slots.begin(), slots.end());
  *usable = true;
  return absl::OkStatus();
}

absl::Status Spool::WriteRecord(const std::string& record) {
  File& file = files_.back();
  size_t done = 0;
  while (done < record.size()) {
    ssize_t wrote = pwrite(file.fd.get(), record.data() + done, record.size() - done,
                           static_cast<off_t>(file.bytes + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      int error = wrote < 0 ? errno : ENOSPC;
      // A torn end would hide what is written after it.
      if (ftruncate(file.fd.get(), static_cast<off_t>(file.bytes)) != 0) {
        LogError("cannot take a torn record back");
      }
      return ErrnoStatus(error, absl::StrCat("cannot write to ", directory_));
    }
    done += static_cast<size_t>(wrote);
  }
  file.bytes += record.size();
  return absl::OkStatus();
}

// Somebody removed the directory while we live. What it held is still open here; what
// comes now shall have a place, too.
absl::Status Spool::MakeDirectoryAnew() {
  LogWarning(absl::StrCat("the spool ", directory_, " was removed; making it anew"));
  LULL_RETURN_IF_ERROR(MakePrivateDirectory(directory_));
  LULL_ASSIGN_OR_RETURN(lock_, LockFile(directory_, "lock"));
  return WriteHello(hello_);
}

absl::Status Spool::BeginFile() {
  uint64_t number = files_.empty() ? 1 : files_.back().number + 1;
  std::string path = PathOf(number);
  auto make = [&path] {
    return UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  };
  UniqueFd fd = make();
  if (!fd && errno == ENOENT && makes_anew_ && MakeDirectoryAnew().ok()) fd = make();
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot make ", path));
  files_.push_back({number, 0, 0, std::move(fd)});
  absl::Status status = WriteRecord(absl::StrCat(
      absl::string_view(kSpoolMagic.data(), kSpoolMagic.size()),
      EncodeRecord(RecordKind::kCheckpoint, state_.last_sequence, state_.Encode())));
  if (!status.ok()) {
    unlink(path.c_str());
    files_.pop_back();
    return status;
  }
  DropAcknowledgedFiles();
  return absl::OkStatus();
}

absl::Status Spool::Append(v1::Batch* batch) {
  batch->set_sequence(state_.last_sequence + 1);
  std::string record =
      EncodeRecord(RecordKind::kBatch, batch->sequence(), batch->SerializeAsString());
  if (record.size() > kMaxRecordBody) {
    return absl::ResourceExhaustedError("a batch is larger than a spool record may be");
  }
  MutexLock lock(mutex_);
  uint64_t limit =
      batch->rings_size() > 0 ? limit_bytes_ - kReserveBytes : limit_bytes_;
  if (BytesLocked() + record.size() > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the spool ", directory_, " is full"));
  }
  if (files_.empty() || files_.back().bytes >= file_bytes_ || state_.needs_checkpoint) {
    LULL_RETURN_IF_ERROR(BeginFile());
    state_.needs_checkpoint = false;
  }
  uint64_t offset = files_.back().bytes;
  LULL_RETURN_IF_ERROR(WriteRecord(record));
  files_.back().last_sequence = batch->sequence();
  slots_.push_back({batch->sequence(), files_.back().number, offset,
                    static_cast<uint32_t>(record.size())});
  last_sequence_ = batch->sequence();
  state_.Apply(*batch);
  TellWhetherAllAcknowledged();
  changed_.notify_all();
  return absl::OkStatus();
}

std::optional<Spool::Entry> Spool::WaitForNext(uint64_t sequence,
                                               absl::Duration timeout) {
  MutexLock lock(mutex_);
  auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return interrupted_ || (!slots_.empty() && slots_.back().sequence > sequence);
  };
  while (changed_.wait_until(lock.native(), deadline, ready) && !interrupted_) {
    auto slot = std::upper_bound(
        slots_.begin(), slots_.end(), sequence,
        [](uint64_t value, const Slot& slot) { return value < slot.sequence; });
    return Entry{slot->sequence, refused_.WhatIsLeft(slot->sequence, BodyOf(*slot))};
  }
  interrupted_ = false;
  return std::nullopt;
}

std::string Spool::BodyOf(const Slot& slot) const {
  auto file = std::find_if(files_.begin(), files_.end(),
                           [&](const File& f) { return f.number == slot.file; });
  std::string bytes(slot.length, '\0');
  ssize_t got = pread(file->fd.get(), bytes.data(), bytes.size(),
                      static_cast<off_t>(slot.offset));
  std::string_view rest = bytes;
  std::optional<Record> record;
  if (got == static_cast<ssize_t>(bytes.size())) record = TakeRecord(&rest);
  if (record) return std::string(record->body);
  // Its gap will show in the report: committed events that are not stored.
  LogError(absl::StrCat("batch ", slot.sequence, " in the spool is damaged"));
  v1::Batch empty;
  empty.set_sequence(slot.sequence);
  return empty.SerializeAsString();
}

void Spool::SetAside(uint64_t sequence) {
  MutexLock lock(mutex_);
  auto slot = std::find_if(slots_.begin(), slots_.end(),
                           [&](const Slot& s) { return s.sequence == sequence; });
  if (slot == slots_.end()) return;
  if (!refused_.Add(sequence, BodyOf(*slot))) AcknowledgeLocked(sequence);
}

void Spool::Interrupt() {
  MutexLock lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

void Spool::Acknowledge(uint64_t sequence) {
  MutexLock lock(mutex_);
  AcknowledgeLocked(sequence);
}

void Spool::AcknowledgeLocked(uint64_t sequence) {
  acknowledged_ = std::max(acknowledged_, std::min(sequence, last_sequence_));
  while (!slots_.empty() && slots_.front().sequence <= acknowledged_) {
    slots_.pop_front();
  }
  DropAcknowledgedFiles();
  TellWhetherAllAcknowledged();
}

void Spool::TellWhetherAllAcknowledged() {
  const bool all = acknowledged_ == last_sequence_;
  if (std::exchange(all_acknowledged_, all) == all) return;
  const int fd = all_acknowledged_fd_.get();
  eventfd_t ignored;
  (void)(all ? eventfd_write(fd, 1) : eventfd_read(fd, &ignored));
}

void Spool::DropAcknowledgedFiles() {
  // The newest one stays: it has the checkpoint.
  while (files_.size() > 1 && files_.front().last_sequence <= acknowledged_) {
    unlink(PathOf(files_.front().number).c_str());
    files_.pop_front();
  }
}

uint64_t Spool::BytesLocked() const {
  uint64_t total = 0;
  for (const File& file : files_) total += file.bytes;
  return total;
}

uint64_t Spool::last_sequence() const {
  MutexLock lock(mutex_);
  return last_sequence_;
}

uint64_t Spool::acknowledged() const {
  MutexLock lock(mutex_);
  return acknowledged_;
}

uint64_t Spool::bytes() const {
  MutexLock lock(mutex_);
  return BytesLocked();
}

absl::Status Spool::Remove() { return RemoveTree(directory_); }

absl::StatusOr<UniqueFd> KeepSpool(const std::string& directory) {
  return LockFile(directory, "keeper");
}

absl::Status Spool::WriteHello(const v1::Hello& hello) {
  hello_ = hello;
  std::string path = directory_ + "/hello";
  std::ofstream file(path + ".new", std::ios::binary | std::ios::trunc);
  file << hello.SerializeAsString();
  file.close();
  if (!file || rename((path + ".new").c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Hello> ReadSpoolHello(const std::string& directory) {
  absl::StatusOr<UniqueFd> file = OpenFile(directory + "/hello", O_RDONLY);
  absl::StatusOr<std::string> bytes;
  if (file.ok() && *file) bytes = ReadUpTo(file->get(), kMaxRecordBody);
  v1::Hello hello;
  if (!bytes.ok() || !hello.ParseFromString(*bytes) || hello.job().id().empty()) {
    return absl::NotFoundError(
        absl::StrCat(directory,
                     " is not the spool of a job, or its file `hello`, which names "
                     "the job, is damaged"));
  }
  return hello;
}

}  // namespace lull::relay
