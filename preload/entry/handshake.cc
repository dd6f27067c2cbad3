#include "preload/entry/handshake.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "preload/abi/handshake.h"
#include "preload/abi/version.h"
#include "preload/support/clock.h"
#include "preload/support/descriptor.h"
#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

constexpr uint64_t kRetryNs = 1'000'000;

class Socket {
 public:
  Socket() {
    fd_ = static_cast<int>(
        syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd_ >= 0 && fd_ <= 2) {
      int low = fd_;  // not in the place of a closed stdin, stdout or stderr
      fd_ = static_cast<int>(syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, 3));
      raw_close(low);
    }
    if (fd_ >= 0) file_ = file_of(fd_);
  }
  ~Socket() { close_if_still(fd_, file_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  // Asked before each use: the program may have closed it, and opened something else.
  bool is_ours() const { return is_still(fd_, file_); }

 private:
  int fd_;
  FileId file_;
};

// False when the time is up.
bool wait_until(int fd, short events, uint64_t deadline_ns) {
  for (;;) {
    uint64_t now = monotonic_ns();
    if (now >= deadline_ns) return false;
    if (raw_poll_one(fd, events, deadline_ns - now) > 0) return true;
  }
}

// A relay whose backlog is full answers EAGAIN: the only error worth waiting for.
Handshake connect_to(const Socket& socket, const char* path, uint64_t deadline_ns) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  size_t length = strlen(path);
  if (length == 0 || length >= sizeof address.sun_path) return Handshake::kRefused;
  memcpy(address.sun_path, path, length + 1);
  for (;;) {
    if (!socket.is_ours()) return Handshake::kRefused;
    if (syscall(SYS_connect, socket.fd(), &address, sizeof address) == 0)
      return Handshake::kAccepted;
    if (errno == ENOENT || errno == ECONNREFUSED) return Handshake::kUnreachable;
    if (errno != EAGAIN && errno != EINTR) return Handshake::kRefused;
    if (monotonic_ns() + kRetryNs >= deadline_ns) return Handshake::kRefused;
    raw_poll_one(-1, 0, kRetryNs);
  }
}

bool is_root_or_our_user(int fd) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) ==
             0 &&
         (credentials.uid == 0 ||
          credentials.uid == static_cast<uid_t>(syscall(SYS_geteuid)));
}

// This process's own memory, for reading; none where the system does not give it. Open
// for as long as it takes to hand it over.
class OwnMemory {
 public:
  explicit OwnMemory(bool wanted) {
    if (!wanted) return;
    constexpr int kFlags = O_RDONLY | O_CLOEXEC;
    fd_ = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", kFlags, 0));
    if (fd_ >= 0 && fd_ <= 2) {
      int low = fd_;
      fd_ = static_cast<int>(syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, 3));
      raw_close(low);
    }
    if (fd_ >= 0) file_ = file_of(fd_);
  }
  ~OwnMemory() { close_if_still(fd_, file_); }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  // -1: there is none, or the program has closed it.
  int fd() const { return is_still(fd_, file_) ? fd_ : -1; }

 private:
  int fd_ = -1;
  FileId file_;
};

// `given`: descriptors that go with it.
bool send_packet(const Socket& socket, void* packet, size_t packet_size,
                 const int* given, size_t count, uint64_t deadline_ns) {
  iovec data = {packet, packet_size};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (count > 0) {
    message.msg_control = ancillary;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(rights), given, count * sizeof(int));
  }
  for (;;) {
    if (!socket.is_ours()) return false;
    long sent = syscall(SYS_sendmsg, socket.fd(), &message, MSG_NOSIGNAL);
    if (sent == static_cast<long>(packet_size)) return true;
    if (errno != EAGAIN && errno != EINTR) return false;
    if (!wait_until(socket.fd(), POLLOUT, deadline_ns)) return false;
  }
}

bool send_hello(const Socket& socket, int memfd, int memory, uint64_t deadline_ns) {
  abi::Hello hello = {memfd >= 0 ? abi::kSegmentMagic : abi::kUnrecordedMagic,
                      abi::kVersion, static_cast<uint32_t>(raw_getpid())};
  const int given[2] = {memfd, memory};
  const size_t count = memfd < 0 ? 0 : memory < 0 ? 1 : 2;
  return send_packet(socket, &hello, sizeof hello, given, count, deadline_ns);
}

bool receive_welcome(const Socket& socket, uint64_t deadline_ns) {
  abi::Welcome welcome = {};
  for (;;) {
    if (!wait_until(socket.fd(), POLLIN, deadline_ns) || !socket.is_ours()) {
      return false;
    }
    long size = syscall(SYS_recvfrom, socket.fd(), &welcome, sizeof welcome, 0, nullptr,
                        nullptr);
    if (size >= 0) {
      return size == sizeof welcome && welcome.version == abi::kVersion &&
             welcome.accepted == 1;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
  }
}

}  // namespace

Handshake hand_over(const char* socket_path, int memfd, Peer peer, Memory memory,
                    uint64_t deadline_ns) {
  Socket socket;
  if (socket.fd() < 0) return Handshake::kRefused;
  Handshake connected = connect_to(socket, socket_path, deadline_ns);
  if (connected != Handshake::kAccepted) return connected;
  const bool trusted = is_root_or_our_user(socket.fd());
  if (peer == Peer::kSameUser && !trusted) return Handshake::kRefused;
  bool sent;
  {
    OwnMemory own(memory == Memory::kGiven && trusted);
    sent = send_hello(socket, memfd, own.fd(), deadline_ns);
  }
  bool accepted = sent && receive_welcome(socket, deadline_ns);
  return accepted ? Handshake::kAccepted : Handshake::kRefused;
}

void say_worker(const char* socket_path, abi::WorkerHello* hello,
                uint64_t deadline_ns) {
  Socket socket;
  if (socket.fd() < 0) return;
  if (connect_to(socket, socket_path, deadline_ns) != Handshake::kAccepted) return;
  hello->hello = {abi::kWorkerMagic, abi::kVersion,
                  static_cast<uint32_t>(raw_getpid())};
  OwnMemory memory(is_root_or_our_user(socket.fd()));
  const int given = memory.fd();
  send_packet(socket, hello, sizeof *hello, &given, given >= 0 ? 1 : 0, deadline_ns);
}

void say_unrecorded(const char* socket_path, uint64_t deadline_ns) {
  Socket socket;
  if (socket.fd() < 0) return;
  if (connect_to(socket, socket_path, deadline_ns) != Handshake::kAccepted) return;
  send_hello(socket, -1, -1, deadline_ns);
}

}  // namespace lull
