#include "tests/preload/support/fake_relay.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "preload/abi/handshake.h"
#include "preload/abi/version.h"

namespace lull {
namespace {

void check(bool ok) {
  if (!ok) std::abort();
}

struct Received {
  abi::Hello hello = {};
  ssize_t size = 0;
  int memfd = -1;
  int memory = -1;
};

Received receive(int connection) {
  Received received;
  iovec data = {&received.hello, sizeof received.hello};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  received.size = recvmsg(connection, &message, MSG_CMSG_CLOEXEC);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&received.memfd, CMSG_DATA(rights), sizeof received.memfd);
    if (rights->cmsg_len >= CMSG_LEN(2 * sizeof(int))) {
      std::memcpy(&received.memory, CMSG_DATA(rights) + sizeof(int),
                  sizeof received.memory);
    }
  }
  return received;
}

}  // namespace

FakeRelay::FakeRelay(Manner manner, Configure configure)
    : manner_(manner), configure_(std::move(configure)) {
  char folder[] = "/tmp/lull-test-XXXXXX";
  check(mkdtemp(folder) != nullptr);
  folder_ = folder;
  path_ = folder_ + "/relay.sock";
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path_.c_str());
  check(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  check(listen(listener_, manner == Manner::kNotAccepting ? 0 : 64) == 0);
  if (manner != Manner::kNotAccepting) thread_ = std::thread([this] { serve(); });
}

FakeRelay::~FakeRelay() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  for (const Target& target : targets_) {
    munmap(target.segment, abi::kSegmentSize);
    close(target.memfd);
    close(target.memory);
  }
  close(listener_);
  unlink(path_.c_str());
  rmdir(folder_.c_str());
}

void FakeRelay::serve() {
  while (!stop_) {
    pollfd entry = {listener_, POLLIN, 0};
    if (poll(&entry, 1, 10) <= 0) continue;
    int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    answer(connection);
    close(connection);
  }
}

void FakeRelay::answer(int connection) {
  if (manner_ == Manner::kHangUp) return;
  Received received = receive(connection);
  check(received.size == sizeof received.hello);
  if (received.memfd < 0) return;  // only says that it could not be recorded
  if (received.hello.magic == abi::kWorkerMagic) {
    close(received.memfd);  // its memory
    return;
  }
  check(received.hello.magic == abi::kSegmentMagic);
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  void* base = mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED,
                    received.memfd, 0);
  check(base != MAP_FAILED);
  if (configure_) configure_(abi::SegmentView(base).control());
  {
    std::lock_guard<std::mutex> lock(mutex_);
    targets_.push_back(
        {credentials.pid, received.memfd, static_cast<char*>(base), received.memory});
  }
  abi::Welcome welcome = {abi::kVersion, 1};
  size_t length = sizeof welcome;
  if (manner_ == Manner::kRefuse) welcome.accepted = 0;
  if (manner_ == Manner::kOtherVersion) welcome.version = abi::kVersion + 1;
  if (manner_ == Manner::kShortAnswer) length = 4;
  if (manner_ == Manner::kSilence) {
    while (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return;
  }
  send(connection, &welcome, length, MSG_NOSIGNAL);
}

std::vector<FakeRelay::Target> FakeRelay::targets() {
  std::lock_guard<std::mutex> lock(mutex_);
  return targets_;
}

FakeRelay::Target FakeRelay::wait_for_target() {
  for (int i = 0; i < 1000; ++i) {
    std::vector<Target> all = targets();
    if (!all.empty()) return all.front();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::abort();
}

}  // namespace lull
