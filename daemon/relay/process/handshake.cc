#include "daemon/relay/process/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/relay/read/process_facts.h"
#include "daemon/relay/read/segment_reader.h"
#include "preload/abi/handshake.h"
#include "preload/abi/segment.h"

namespace lull::relay {
namespace {

constexpr size_t kMaxConnections = 256;  // that have not said hello yet
constexpr long kTmpfs = 0x01021994;      // a memfd of ordinary pages

// A packet with at most two descriptors: the segment, the target's memory. 0: nothing
// there yet; -1: the other end is gone or sent something else.
ssize_t ReceiveHello(int fd, abi::WorkerHello* packet, UniqueFd* memfd,
                     UniqueFd* memory) {
  iovec data{packet, sizeof(*packet)};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (got <= 0) return -1;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received;
      memcpy(&received, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      // None leaks; the last one stays.
      (*memfd ? memory : memfd)->reset(received);
    }
  }
  const abi::Hello& hello = packet->hello;
  if ((message.msg_flags & MSG_TRUNC) != 0) return -1;
  if (got == sizeof(*packet) && hello.magic == abi::kWorkerMagic) {
    *memory = std::move(*memfd);
    return got;
  }
  if (got != sizeof(hello) || hello.magic == abi::kWorkerMagic) return -1;
  bool regrets = hello.magic == abi::kUnrecordedMagic;
  return regrets != static_cast<bool>(*memfd) ? got : -1;
}

// A segment of our own for a process that has none: what it says of its Python, as its
// shim would have written it there. None: no descriptor, or it is none that we know.
UniqueFd SegmentOf(const abi::WorkerHello& packet, pid_t pid) {
  if (packet.hello.version != abi::kVersion || pid <= 0 ||
      packet.hello.pid != static_cast<uint32_t>(pid)) {
    return {};
  }
  UniqueFd memfd(static_cast<int>(
      syscall(SYS_memfd_create, "lull-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  if (!memfd || ftruncate(memfd.get(), abi::kSegmentSize) != 0 ||
      fcntl(memfd.get(), F_ADD_SEALS, kSeals) != 0) {
    return {};
  }
  void* base = mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED,
                    memfd.get(), 0);
  if (base == MAP_FAILED) return {};
  abi::SegmentView view(base);
  abi::SegmentHeader& header = view.header();
  header.magic = abi::kSegmentMagic;
  header.version = abi::kVersion;
  header.pid = packet.hello.pid;
  header.size = abi::kSegmentSize;
  header.created_ns = MonotonicNs();
  header.python_version = 3u << 8 | (packet.layout.minor & 0xff);
  header.python_layout = packet.layout;
  header.python_code_type = packet.code_type;
  view.ring(0).python_state = packet.python_state;
  view.ring(0).python_thread = packet.python_thread;
  view.owner(0) = abi::owner_word(0, packet.hello.pid);
  header.rings_taken = header.rings_used = 1;
  munmap(base, abi::kSegmentSize);
  return memfd;
}

const char* WhatIsWrongWith(const abi::Hello& hello, int memfd) {
  if (hello.magic != abi::kSegmentMagic) return "not a lull target";
  if (hello.version != abi::kVersion) return "another protocol version";
  struct stat info;
  struct statfs filesystem;
  if (fstat(memfd, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size != static_cast<off_t>(abi::kSegmentSize)) {
    return "segment of another size";
  }
  // Huge pages may be missing when they are touched: SIGBUS.
  if (fstatfs(memfd, &filesystem) != 0 || filesystem.f_type != kTmpfs) {
    return "segment that is not ordinary memory";
  }
  int seals = fcntl(memfd, F_GET_SEALS);
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  if (seals < 0 || (seals & kNeeded) != kNeeded) return "segment without seals";
  void* header =
      mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  if (header == MAP_FAILED) return "segment that cannot be mapped";
  bool sane = SegmentReader(static_cast<char*>(header)).HeaderIsSane();
  munmap(header, abi::kSegmentSize);
  return sane ? nullptr : "segment with another header";
}

// A descriptor of /proc/PID/mem, for reading: nothing that a read would wait for.
bool IsMemory(int fd) {
  constexpr long kProc = 0x9fa0;
  struct stat info;
  struct statfs filesystem;
  char name[PATH_MAX];
  const int flags = fcntl(fd, F_GETFL);
  const ssize_t size =
      readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), name, sizeof(name));
  return flags >= 0 && (flags & (O_ACCMODE | O_PATH)) == O_RDONLY &&
         fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
         fstatfs(fd, &filesystem) == 0 && filesystem.f_type == kProc && size > 0 &&
         absl::EndsWith(absl::string_view(name, static_cast<size_t>(size)), "/mem");
}

// Which process connected; false when it is not one of `user`'s, our own user's or
// root's.
bool PeerOf(int fd, uint32_t user, pid_t* pid) {
  ucred credentials;
  socklen_t length = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return false;
  *pid = credentials.pid;
  return credentials.uid == geteuid() || credentials.uid == 0 ||
         (user != UINT32_MAX && credentials.uid == user);
}

absl::Status RemoveDeadSocket(const sockaddr_un& address) {
  UniqueFd probe(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0 ||
      errno != ECONNREFUSED) {
    return absl::AlreadyExistsError(
        absl::StrCat("another relay listens on ", address.sun_path));
  }
  unlink(address.sun_path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UniqueFd> ListenForTargets(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path[0] != '/' || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the socket path \"", path, "\" must be absolute and shorter than ",
        sizeof(address.sun_path), " bytes"));
  }
  memcpy(address.sun_path, path.data(), path.size());
  LULL_RETURN_IF_ERROR(
      MakePrivateDirectory(std::filesystem::path(path).parent_path().string()));
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return ErrnoStatus(errno, "cannot make a socket");
  auto* generic = reinterpret_cast<const sockaddr*>(&address);
  // The mode of the socket file comes from this descriptor's own mode.
  fchmod(listener.get(), 0600);
  if (bind(listener.get(), generic, sizeof(address)) != 0) {
    if (errno != EADDRINUSE) {
      return ErrnoStatus(errno, absl::StrCat("cannot bind ", path));
    }
    LULL_RETURN_IF_ERROR(RemoveDeadSocket(address));
    if (bind(listener.get(), generic, sizeof(address)) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot bind ", path));
    }
  }
  if (chmod(path.c_str(), 0600) != 0 || listen(listener.get(), SOMAXCONN) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot listen on ", path));
  }
  return listener;
}

TargetSocket::TargetSocket(std::string path, UniqueFd listener)
    : path_(std::move(path)), listener_(std::move(listener)) {
  Remember();
}

void TargetSocket::Remember() {
  seen_ns_ = MonotonicNs();
  struct stat info;
  if (lstat(path_.c_str(), &info) != 0) return;
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

bool TargetSocket::IsOurs() const {
  struct stat info;
  return lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ &&
         info.st_ino == inode_;
}

// It may have gone as soon as it had been seen.
bool TargetSocket::IsThere(uint64_t now_ns) {
  if (IsOurs()) {
    seen_ns_ = now_ns;
    return true;
  }
  if (gone_since_ns_ == 0) {
    gone_since_ns_ = seen_ns_;
    LogDebug(absl::StrCat(path_, " is gone: no new process can be recorded"));
  }
  return false;
}

bool TargetSocket::Check(uint64_t now_ns) {
  constexpr uint64_t kPeriodNs = 1'000'000'000;
  if (now_ns - looked_ns_ < kPeriodNs) return false;
  looked_ns_ = now_ns;
  if (IsThere(now_ns)) return false;
  auto made = ListenForTargets(path_);
  if (!made.ok()) return false;
  listener_ = *std::move(made);
  Remember();
  unreachable_ns_ = unreachable_ns(now_ns);
  gone_since_ns_ = 0;
  return true;
}

void TargetSocket::Unlink() {
  if (IsOurs()) unlink(path_.c_str());
}

HandshakeListener::HandshakeListener(int listen_fd, uint32_t user)
    : listen_fd_(listen_fd),
      user_(user),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      reserve_(fcntl(listen_fd, F_DUPFD_CLOEXEC, 0)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listen_fd;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listen_fd, &event);
}

void HandshakeListener::AcceptAll() {
  while (connections_.size() < kMaxConnections) {
    UniqueFd fd(accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && (errno == EMFILE || errno == ENFILE) && TurnAway()) continue;
    if (!fd) return;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd.get();
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) continue;
    connections_.push_back({std::move(fd), MonotonicNs()});
  }
}

// Without a descriptor left, whoever comes would wait in vain for an answer, and nobody
// would know of it. One descriptor is kept for that.
bool HandshakeListener::TurnAway() {
  reserve_.reset();
  UniqueFd fd(accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) ++refused_;
  bool turned_away = static_cast<bool>(fd);
  fd.reset();
  reserve_.reset(fcntl(listen_fd_, F_DUPFD_CLOEXEC, 0));
  return turned_away;
}

// Taken out of the set by hand: the process of a new worker has a copy of the
// descriptor until it calls exec, and as long as there is one, closing ours takes
// nothing out. What comes there would be read as the hello of somebody who cannot be
// recorded, each time.
void HandshakeListener::ForgetIf(absl::FunctionRef<bool(const Connection&)> gone) {
  connections_.remove_if([&](const Connection& connection) {
    if (!gone(connection)) return false;
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.fd.get(), nullptr);
    return true;
  });
}

bool HandshakeListener::Serve(int fd, absl::FunctionRef<bool(Newcomer)> accept) {
  abi::WorkerHello packet{};
  const abi::Hello& hello = packet.hello;
  Newcomer newcomer;
  ssize_t got = ReceiveHello(fd, &packet, &newcomer.memfd, &newcomer.memory);
  if (newcomer.memory && !IsMemory(newcomer.memory.get())) newcomer.memory.reset();
  if (got == 0) return false;
  const char* wrong = got < 0 ? "no proper hello" : nullptr;
  if (wrong == nullptr && !PeerOf(fd, user_, &newcomer.pid))
    wrong = "another user's process";
  if (wrong == nullptr && hello.magic == abi::kUnrecordedMagic) {
    ++unrecorded_;
    return true;
  }
  if (wrong == nullptr && hello.magic == abi::kWorkerMagic) {
    AcceptWorker(packet, std::move(newcomer), accept);
    return true;
  }
  if (wrong == nullptr) wrong = WhatIsWrongWith(hello, newcomer.memfd.get());

  abi::Welcome welcome{abi::kVersion, 0};
  if (wrong == nullptr) {
    if (newcomer.pid > 0) {
      newcomer.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, newcomer.pid, 0)));
    }
    newcomer.info = ReadProcessFacts(newcomer.pid);
    welcome.accepted = accept(std::move(newcomer)) ? 1 : 0;
  } else {
    // No warning: stderr is the job's. The report tells how many there were.
    ++refused_;
    LogDebug(absl::StrCat("refused a target: ", wrong));
  }
  send(fd, &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL);
  return true;
}

void HandshakeListener::AcceptWorker(const abi::WorkerHello& packet, Newcomer newcomer,
                                     absl::FunctionRef<bool(Newcomer)> accept) {
  newcomer.memfd = SegmentOf(packet, newcomer.pid);
  if (!newcomer.memfd) return;
  newcomer.pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, newcomer.pid, 0)));
  // It waited for no answer: it may be gone by now, and its end would never be seen.
  if (!newcomer.pidfd && errno == ESRCH) return;
  newcomer.info = ReadProcessFacts(newcomer.pid);
  newcomer.loader = true;
  accept(std::move(newcomer));
}

void HandshakeListener::Poll(absl::FunctionRef<bool(Newcomer)> accept) {
  AcceptAll();
  epoll_event events[64];
  int count;
  do {
    count = epoll_wait(epoll_.get(), events, 64, 0);
    for (int i = 0; i < count; ++i) {
      int fd = events[i].data.fd;
      if (fd == listen_fd_) {
        AcceptAll();
      } else if (Serve(fd, accept)) {
        ForgetIf([fd](const Connection& c) { return c.fd.get() == fd; });
      }
    }
  } while (count == 64);
  constexpr uint64_t kPatienceNs = abi::kHandshakeTimeoutMs * 1'000'000ull;
  const uint64_t now_ns = MonotonicNs();
  ForgetIf([now_ns](const Connection& c) { return now_ns - c.since_ns > kPatienceNs; });
}

}  // namespace lull::relay
