#include "tests/sim/nccl/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/sim/engine/clock.h"

namespace lull::sim::nccl {
namespace {

constexpr uint64_t kSlots = 4;

uint64_t slot(uint64_t number) { return number % kSlots; }

// When the process began, in ticks since the host's start; 0 if it is over.
uint64_t start_of(uint32_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = ::read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  const char* at = strrchr(text, ')');  // after the name comes the state
  if (at == nullptr || at[1] == '\0' || strchr("ZXx", at[2]) != nullptr) return 0;
  ++at;
  for (int field = 3; field < 22; ++field) {
    at = strchr(at + 1, ' ');
    if (at == nullptr) return 0;
  }
  return strtoull(at, nullptr, 10);
}

}  // namespace

struct Segment::Head {
  std::atomic<uint32_t> size, joined, changes, spoilt;
  std::atomic<uint64_t> arrived[kSlots];  // in all, since the beginning
};

std::unique_ptr<Segment> Segment::open(const std::string& path, uint32_t size,
                                       std::string* error) {
  auto failed = [&](const char* what) {
    *error = std::string(what) + " " + path + ": " + strerror(errno);
    return nullptr;
  };
  // Two sides of each message between two ranks; what nobody touches takes no memory.
  const uint64_t pairs = uint64_t{2} * size * size;
  const uint64_t bytes = sizeof(Head) + size * sizeof(Rank) +
                         kSlots * (size * (sizeof(Arrival) + sizeof(Choice)) +
                                   pairs * sizeof(Arrival) + size * kPayload);
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return failed("cannot open");
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    close(fd);
    return failed("cannot extend");
  }
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED) return failed("cannot map");
  std::unique_ptr<Segment> segment(new Segment(path, size, base));
  uint32_t known = 0;
  if (!segment->head_->size.compare_exchange_strong(known, size) && known != size) {
    *error = "ranks that disagree about their number: " + std::to_string(known) +
             " and " + std::to_string(size);
    return nullptr;
  }
  return segment;
}

Segment::Segment(std::string path, uint32_t size, void* base)
    : path_(std::move(path)), size_(size), head_(static_cast<Head*>(base)) {
  ranks_ = reinterpret_cast<Rank*>(head_ + 1);
  arrivals_ = reinterpret_cast<Arrival*>(ranks_ + size);
  choices_ = reinterpret_cast<Choice*>(arrivals_ + kSlots * size);
  sides_ = reinterpret_cast<Arrival*>(choices_ + kSlots * size);
  payloads_ = reinterpret_cast<char*>(sides_ + kSlots * 2 * size * size);
}

// What it takes is computed as in open().
Segment::~Segment() {
  const char* end = payloads_ + kSlots * size_ * kPayload;
  munmap(head_, static_cast<size_t>(end - reinterpret_cast<char*>(head_)));
}

bool Segment::join(uint32_t rank) {
  Rank& mine = ranks_[rank];
  Presence expected = Presence::kNotYet;
  if (!mine.presence.compare_exchange_strong(expected, Presence::kComing)) return false;
  mine.pid = static_cast<uint32_t>(getpid());
  mine.born = start_of(mine.pid);
  mine.presence = Presence::kHere;
  if (++head_->joined == size_) remove();
  announce();
  return true;
}

void Segment::leave(uint32_t rank) {
  ranks_[rank].presence = Presence::kLeft;
  announce();
}

bool Segment::complete() const { return head_->joined == size_; }

void Segment::remove() const { unlink(path_.c_str()); }

bool Segment::alive(uint32_t rank) const {
  return start_of(ranks_[rank].pid) == ranks_[rank].born;
}

void Segment::arrive(uint64_t number, uint32_t rank, int64_t start_ns,
                     int64_t duration_ns, uint64_t signature) {
  Arrival& mine = arrivals_[slot(number) * size_ + rank];
  mine.start_ns = start_ns;
  mine.duration_ns = duration_ns;
  mine.signature = signature;
  mine.tag.store(number + 1, std::memory_order_release);
  // Only with the last one is there anything to be seen.
  uint64_t before = head_->arrived[slot(number)].fetch_add(1);
  if ((before + 1) % size_ == 0) announce();
}

const Arrival* Segment::arrival(uint64_t number, uint32_t rank) const {
  const Arrival& one = arrivals_[slot(number) * size_ + rank];
  return one.tag.load(std::memory_order_acquire) == number + 1 ? &one : nullptr;
}

char* Segment::payload(uint64_t number, uint32_t rank) const {
  return payloads_ + (slot(number) * size_ + rank) * kPayload;
}

void Segment::choose(uint64_t number, uint32_t rank, int32_t color, int32_t key) {
  Choice& mine = choices_[slot(number) * size_ + rank];
  mine.color = color;
  mine.key = key;
  mine.tag.store(number + 1, std::memory_order_release);
  announce();
}

const Choice* Segment::choice(uint64_t number, uint32_t rank) const {
  const Choice& one = choices_[slot(number) * size_ + rank];
  return one.tag.load(std::memory_order_acquire) == number + 1 ? &one : nullptr;
}

Arrival* Segment::side(bool sender, uint32_t from, uint32_t to, uint64_t number) const {
  uint64_t pair = (uint64_t{from} * size_ + to) * 2 + (sender ? 0 : 1);
  return &sides_[pair * kSlots + slot(number)];
}

void Segment::pass(bool sender, uint32_t from, uint32_t to, uint64_t number,
                   int64_t start_ns, int64_t duration_ns) {
  Arrival& mine = *side(sender, from, to, number);
  mine.start_ns = start_ns;
  mine.duration_ns = duration_ns;
  mine.tag.store(number + 1, std::memory_order_release);
}

const Arrival* Segment::passed(bool sender, uint32_t from, uint32_t to,
                               uint64_t number) const {
  const Arrival* one = side(sender, from, to, number);
  return one->tag.load(std::memory_order_acquire) == number + 1 ? one : nullptr;
}

void Segment::spoil() {
  head_->spoilt = 1;
  announce();
}

bool Segment::spoilt() const { return head_->spoilt != 0; }

uint32_t Segment::changes() const { return head_->changes; }

void Segment::wait(uint32_t seen, int64_t timeout_ns) const {
  shared_futex_wait(reinterpret_cast<const uint32_t*>(&head_->changes), seen,
                    timeout_ns);
}

void Segment::announce() {
  ++head_->changes;
  shared_futex_wake_all(reinterpret_cast<uint32_t*>(&head_->changes));
}

}  // namespace lull::sim::nccl
