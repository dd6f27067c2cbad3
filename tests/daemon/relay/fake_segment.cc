#include "tests/daemon/relay/fake_segment.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "preload/abi/handshake.h"

namespace lull::relay {

FakeSegment::FakeSegment()
    : memfd_(memfd_create("fake-lull", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (ftruncate(memfd_.get(), abi::kSegmentSize) != 0) abort();
  fcntl(memfd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  void* base = mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED,
                    memfd_.get(), 0);
  if (base == MAP_FAILED) abort();
  base_ = static_cast<char*>(base);
  abi::SegmentHeader& header = view().header();
  header.magic = abi::kSegmentMagic;
  header.version = abi::kVersion;
  header.pid = static_cast<uint32_t>(getpid());
  header.size = abi::kSegmentSize;
  header.created_ns = MonotonicNs();
  header.created_realtime_ns = RealtimeNs();
  header.arena_used = 16;  // offset 0 is never used
}

FakeSegment::~FakeSegment() { munmap(base_, abi::kSegmentSize); }

bool FakeSegment::Commit(uint32_t ring, const abi::Event& event) {
  abi::RingHeader& header = view().ring(ring);
  uint64_t head = header.head.load(std::memory_order_relaxed);
  if (head == 0) Take(ring);
  if (head % abi::kChunkEvents == 0 && !OpenChunk(ring, head / abi::kChunkEvents)) {
    header.lost.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  view().slot(ring, head) = event;
  header.head.store(head + 1, std::memory_order_release);
  return true;
}

void FakeSegment::Take(uint32_t ring) {
  auto tid = static_cast<uint32_t>(getpid());
  abi::OwnerWord nobody = abi::kFreeRing;
  view().owner(ring).compare_exchange_strong(nobody, abi::owner_word(1, tid));
  std::atomic<uint32_t>& used = view().header().rings_used;
  for (uint32_t seen = used; seen <= ring;) used.compare_exchange_weak(seen, ring + 1);
}

bool FakeSegment::OpenChunk(uint32_t ring, uint64_t number) {
  abi::RingHeader& header = view().ring(ring);
  std::atomic<abi::ChunkId>* table = view().table(ring);
  uint64_t oldest = header.oldest;
  uint64_t tail = header.tail.load(std::memory_order_acquire);
  abi::ChunkId id = 0;
  if (oldest < number && (oldest + 1) * abi::kChunkEvents <= tail) {
    id = table[oldest % abi::kRingChunks];
    header.oldest = oldest + 1;
  } else if (number - oldest < abi::kRingChunks) {
    uint32_t next = view().header().chunks_used.fetch_add(1);
    if (next >= abi::kPoolChunks) return false;
    id = static_cast<abi::ChunkId>(next);
  } else {
    return false;
  }
  table[number % abi::kRingChunks] = id;
  return true;
}

abi::Ref FakeSegment::Allocate(size_t bytes) {
  uint32_t offset = view().header().arena_used.fetch_add((bytes + 15) / 16 * 16);
  return offset / 16;
}

abi::Ref FakeSegment::AddCode(const std::string& file, const std::string& name,
                              int first_line, int python_minor,
                              const std::string& linetable) {
  size_t bytes = sizeof(abi::CodeEntry) + file.size() + name.size() + linetable.size();
  abi::Ref ref = Allocate(bytes);
  abi::CodeEntry entry{};
  entry.header = {abi::EntryKind::kPythonCode, static_cast<uint32_t>(bytes)};
  entry.first_line = first_line;
  entry.python_minor = static_cast<uint16_t>(python_minor);
  entry.filename_size = static_cast<uint16_t>(file.size());
  entry.name_size = static_cast<uint16_t>(name.size());
  entry.linetable_size = static_cast<uint32_t>(linetable.size());
  char* out = view().entry(ref);
  memcpy(out, &entry, sizeof(entry));
  std::string text = file + name + linetable;
  memcpy(out + sizeof(entry), text.data(), text.size());
  return ref;
}

namespace {

void WriteStack(char* out, abi::EntryKind kind, const void* frames, size_t depth) {
  abi::StackEntry entry{};
  entry.header = {kind, static_cast<uint32_t>(sizeof(entry) + depth * 8)};
  entry.depth = static_cast<uint32_t>(depth);
  memcpy(out, &entry, sizeof(entry));
  memcpy(out + sizeof(entry), frames, depth * 8);
}

}  // namespace

abi::Ref FakeSegment::AddPythonStack(
    const std::vector<std::pair<abi::Ref, int32_t>>& frames) {
  std::vector<abi::PythonFrame> raw;
  for (auto [code, lasti] : frames) raw.push_back({code, lasti});
  abi::Ref ref = Allocate(sizeof(abi::StackEntry) + raw.size() * 8);
  WriteStack(view().entry(ref), abi::EntryKind::kPythonStack, raw.data(), raw.size());
  return ref;
}

abi::Ref FakeSegment::AddNativeStack(const std::vector<uint64_t>& addresses) {
  abi::Ref ref = Allocate(sizeof(abi::StackEntry) + addresses.size() * 8);
  WriteStack(view().entry(ref), abi::EntryKind::kNativeStack, addresses.data(),
             addresses.size());
  return ref;
}

abi::Ref FakeSegment::AddScopeStack(const std::vector<abi::Ref>& names) {
  std::vector<uint64_t> raw(names.begin(), names.end());
  abi::Ref ref = Allocate(sizeof(abi::StackEntry) + raw.size() * 8);
  WriteStack(view().entry(ref), abi::EntryKind::kScopeStack, raw.data(), raw.size());
  return ref;
}

abi::Ref FakeSegment::AddText(const std::string& text) {
  abi::TextEntry entry{};
  entry.header = {abi::EntryKind::kText,
                  static_cast<uint32_t>(sizeof(entry) + text.size())};
  entry.size = static_cast<uint32_t>(text.size());
  abi::Ref ref = Allocate(entry.header.size);
  memcpy(view().entry(ref), &entry, sizeof(entry));
  memcpy(view().entry(ref) + sizeof(entry), text.data(), text.size());
  return ref;
}

template <typename T>
abi::Ref FakeSegment::AddFixed(abi::EntryKind kind, T entry) {
  entry.header = {kind, sizeof(entry)};
  abi::Ref ref = Allocate(sizeof(entry));
  memcpy(view().entry(ref), &entry, sizeof(entry));
  return ref;
}

abi::Ref FakeSegment::AddKernel(abi::Ref name, uint32_t grid, uint32_t block) {
  abi::KernelEntry entry{};
  entry.name = name;
  entry.grid[0] = grid;
  entry.grid[1] = entry.grid[2] = 1;
  entry.block[0] = block;
  entry.block[1] = entry.block[2] = 1;
  entry.registers_per_thread = 40;
  entry.static_shared_bytes = 1024;
  entry.dynamic_shared_bytes = 2048;
  return AddFixed(abi::EntryKind::kKernel, entry);
}

abi::Ref FakeSegment::AddBackward(abi::Ref node, abi::Ref caller, abi::Ref forward) {
  abi::BackwardEntry entry{};
  entry.node = node;
  entry.caller = caller;
  entry.forward = forward;
  return AddFixed(abi::EntryKind::kBackward, entry);
}

abi::Ref FakeSegment::AddGpuStream(uint32_t device, uint32_t context, uint32_t stream) {
  abi::GpuStreamEntry entry{};
  entry.device = device;
  entry.context = context;
  entry.stream = stream;
  return AddFixed(abi::EntryKind::kGpuStream, entry);
}

abi::Ref FakeSegment::AddGpuDevice(abi::Ref name, uint32_t device,
                                   uint32_t multiprocessors) {
  abi::GpuDeviceEntry entry{};
  entry.name = name;
  entry.device = device;
  entry.multiprocessors = multiprocessors;
  entry.max_threads_per_multiprocessor = 2048;
  entry.max_blocks_per_multiprocessor = 32;
  entry.max_registers_per_multiprocessor = 65536;
  entry.max_shared_bytes_per_multiprocessor = 228 << 10;
  entry.warp_size = 32;
  entry.compute_capability = 90;
  entry.total_bytes = uint64_t{141} << 30;
  return AddFixed(abi::EntryKind::kGpuDevice, entry);
}

bool FakeSegment::Handshake(const std::string& socket_path) {
  return SayHello(socket_path, memfd_.get(), abi::kSegmentMagic, abi::kVersion) == 1;
}

abi::Event MakeEvent(abi::EventType type, uint64_t value, uint64_t start_ns) {
  abi::Event event{};
  event.start_ns = start_ns;
  event.duration_ns = 10;
  event.arg0 = value;
  event.type = type;
  return event;
}

int SayHello(const std::string& socket_path, int memfd, uint64_t magic,
             uint32_t version, int memory) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, socket_path.c_str(), sizeof(address.sun_path) - 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return -1;
  }
  abi::Hello hello{magic, version, static_cast<uint32_t>(getpid())};
  iovec data{&hello, sizeof(hello)};
  const int given[2] = {memfd, memory};
  const size_t size = memory >= 0 ? sizeof(given) : sizeof(memfd);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(given))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (memfd >= 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(size);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(part), given, size);
  }
  if (sendmsg(fd.get(), &message, MSG_NOSIGNAL) < 0) return -1;
  pollfd entry{fd.get(), POLLIN, 0};
  abi::Welcome welcome{};
  if (poll(&entry, 1, abi::kHandshakeTimeoutMs) != 1 ||
      recv(fd.get(), &welcome, sizeof(welcome), 0) != sizeof(welcome)) {
    return -1;
  }
  return static_cast<int>(welcome.accepted);
}

}  // namespace lull::relay
