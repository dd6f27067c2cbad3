#include "daemon/collector/serve/unix_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"

namespace lull::collector {
namespace {

constexpr int kLookEveryMs = 200;
// Somebody who starts a collector holds the lock until it finds the database in use.
constexpr int kMaxTries = 25;

std::string LockPath(const std::string& path) { return absl::StrCat(path, ".lock"); }

absl::StatusOr<UniqueFd> TakeLock(const std::string& path) {
  std::string lock = LockPath(path);
  UniqueFd fd(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", lock));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another lulld listens on unix:", path));
  }
  return fd;
}

absl::StatusOr<UniqueFd> Listen(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoStatus(errno, "cannot make a socket");
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is there and is no socket"));
    }
    unlink(path.c_str());  // we hold the lock: whoever made it is dead
  }
  mode_t before = umask(0177);
  int rc = bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  umask(before);
  if (rc != 0 || listen(fd.get(), 128) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot listen on unix:", path));
  }
  return fd;
}

bool IsOurs(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Create(
    const std::string& path) {
  LULL_RETURN_IF_ERROR(
      MakePrivateDirectory(std::filesystem::path(path).parent_path().string()));
  LULL_ASSIGN_OR_RETURN(UniqueFd lock, TakeLock(path));
  UniqueFd wakeup(eventfd(0, EFD_CLOEXEC));
  if (!wakeup) return ErrnoStatus(errno, "cannot make an eventfd");
  return std::unique_ptr<UnixListener>(
      new UnixListener(path, std::move(lock), std::move(wakeup)));
}

UnixListener::UnixListener(std::string path, UniqueFd lock, UniqueFd wakeup)
    : path_(std::move(path)), lock_(std::move(lock)), wakeup_(std::move(wakeup)) {}

UnixListener::FileId UnixListener::IdOf(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

// A socket that was gone before anybody could look has no id either.
bool UnixListener::SocketIsThere() const {
  const FileId id = IdOf(path_);
  return id != FileId{} && id == made_;
}

UnixListener::~UnixListener() { Stop(); }

absl::Status UnixListener::Start(grpc::Server* server) {
  LULL_ASSIGN_OR_RETURN(socket_, Listen(path_));
  made_ = IdOf(path_);
  thread_ = std::thread([this, server] { Run(server); });
  return absl::OkStatus();
}

void UnixListener::Stop() {
  if (!socket_) return;
  uint64_t one = 1;
  if (thread_.joinable() && write(wakeup_.get(), &one, sizeof(one)) == sizeof(one)) {
    thread_.join();
  }
  if (SocketIsThere()) unlink(path_.c_str());
  socket_.reset();
}

void UnixListener::ListenAgainIfGone() {
  if (SocketIsThere()) return;
  if (!MakePrivateDirectory(std::filesystem::path(path_).parent_path().string()).ok()) {
    return;  // not yet
  }
  struct stat held;
  bool have_lock = fstat(lock_.get(), &held) == 0 &&
                   IdOf(LockPath(path_)) == FileId{held.st_dev, held.st_ino};
  if (!have_lock) {
    auto lock = TakeLock(path_);
    if (lock.ok()) {
      lock_ = *std::move(lock);
    } else {
      if (absl::IsFailedPrecondition(lock.status()) && ++tries_ >= kMaxTries) {
        superseded_ = true;
      }
      return;
    }
  }
  auto socket = Listen(path_);
  if (!socket.ok()) return;
  LogWarning(absl::StrCat("unix:", path_, " was gone and is made anew"));
  socket_ = *std::move(socket);
  made_ = IdOf(path_);
  tries_ = 0;
}

void UnixListener::Run(grpc::Server* server) {
  uint64_t looked_ns = MonotonicNs();
  while (true) {
    pollfd entries[2] = {{socket_.get(), POLLIN, 0}, {wakeup_.get(), POLLIN, 0}};
    int ready = poll(entries, 2, kLookEveryMs);
    if (ready < 0 && errno != EINTR) return;
    if (ready > 0 && entries[1].revents != 0) return;
    if (ready > 0) Accept(server);
    if (MonotonicNs() - looked_ns < kLookEveryMs * 1'000'000ull) continue;
    ListenAgainIfGone();
    looked_ns = MonotonicNs();
  }
}

void UnixListener::Accept(grpc::Server* server) {
  UniqueFd peer(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!peer) {
    // Out of descriptors: the connection stays in the backlog; do not spin.
    pollfd wakeup{wakeup_.get(), POLLIN, 0};
    if (errno == EMFILE || errno == ENFILE) poll(&wakeup, 1, 100);
    return;
  }
  if (!IsOurs(peer.get())) {
    LogWarning("refused a connection of another user");
    return;
  }
  grpc::AddInsecureChannelFromFd(server, peer.release());
}

}  // namespace lull::collector
