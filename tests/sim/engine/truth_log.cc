#include "tests/sim/engine/truth_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "tests/sim/engine/clock.h"

namespace lull::sim {
namespace {

// Address space, not memory: 45 million records.
constexpr uint64_t kMappedBytes = uint64_t{4} << 30;
constexpr uint64_t kMaxChunks = (kMappedBytes - kHeaderBytes) / kChunkBytes;
constexpr uint64_t kGrowChunks = 256;

struct Chunk {
  char* next = nullptr;
  char* end = nullptr;
  uint64_t generation = 0;
};
thread_local Chunk t_chunk;

uint64_t bytes_for(uint64_t chunks) { return kHeaderBytes + chunks * kChunkBytes; }

template <typename T>
void publish(T* slot, const T& record) {
  std::memcpy(reinterpret_cast<char*>(slot) + sizeof slot->type,
              reinterpret_cast<const char*>(&record) + sizeof slot->type,
              sizeof record - sizeof slot->type);
  __atomic_store_n(&slot->type, record.type, __ATOMIC_RELEASE);
}

}  // namespace

bool TruthLog::open_from_environment() {
  const char* variable = getenv("LULL_SIM_LOG");
  if (variable == nullptr || *variable == '\0') return true;
  std::string path = variable;
  std::string pid = std::to_string(getpid());
  size_t mark = path.find("%p");
  if (mark != std::string::npos) {
    path.replace(mark, 2, pid);
  } else {
    path += "." + pid;
  }
  // Absolute: the program may change its folder before the file grows.
  if (path[0] != '/') {
    char folder[PATH_MAX];
    if (getcwd(folder, sizeof folder) != nullptr)
      path = std::string(folder) + "/" + path;
  }
  std::string free_path = path;
  for (int i = 1; access(free_path.c_str(), F_OK) == 0; ++i) {
    free_path = path + "." + std::to_string(i);
  }
  return open(free_path);
}

bool TruthLog::open(std::string path) {
  path_ = std::move(path);
  int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  if (ftruncate(fd, static_cast<off_t>(bytes_for(kGrowChunks))) != 0) {
    close(fd);
    return false;
  }
  void* base = mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fd, 0);
  close(fd);
  if (base == MAP_FAILED) return false;
  file_chunks_.store(kGrowChunks);
  auto* header = static_cast<TruthHeader*>(base);
  timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  header->version = kTruthVersion;
  header->pid = static_cast<uint32_t>(getpid());
  header->monotonic_ns = now_ns();
  header->realtime_ns = int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec;
  header->magic = kTruthMagic;
  base_ = static_cast<char*>(base);
  return true;
}

bool TruthLog::grow(uint64_t chunk) {
  std::lock_guard lock(mutex_);
  if (chunk < file_chunks_.load()) return true;
  uint64_t chunks = chunk + kGrowChunks;
  // The mapping reaches beyond the end of the file: making it longer is enough.
  if (truncate(path_.c_str(), static_cast<off_t>(bytes_for(chunks))) != 0) return false;
  file_chunks_.store(chunks);
  return true;
}

bool TruthLog::take_chunk() {
  auto* header = reinterpret_cast<TruthHeader*>(base_);
  uint64_t chunk = __atomic_fetch_add(&header->chunks, 1, __ATOMIC_RELAXED);
  if (chunk >= kMaxChunks || (chunk >= file_chunks_.load() && !grow(chunk)))
    return false;
  t_chunk.next = base_ + bytes_for(chunk);
  t_chunk.end = t_chunk.next + kChunkBytes;
  t_chunk.generation = generation_.load(std::memory_order_relaxed);
  return true;
}

TruthRecord* TruthLog::slot() {
  if (base_ == nullptr) return nullptr;
  bool ours = t_chunk.generation == generation_.load(std::memory_order_relaxed);
  if ((!ours || t_chunk.next == t_chunk.end) && !take_chunk()) {
    auto* header = reinterpret_cast<TruthHeader*>(base_);
    __atomic_fetch_add(&header->dropped, 1, __ATOMIC_RELAXED);
    return nullptr;
  }
  auto* record = reinterpret_cast<TruthRecord*>(t_chunk.next);
  t_chunk.next += sizeof(TruthRecord);
  return record;
}

TruthRecord* TruthLog::append(const TruthRecord& record) {
  TruthRecord* place = slot();
  if (place != nullptr) publish(place, record);
  return place;
}

uint32_t TruthLog::name(std::string_view text) {
  uint32_t id;
  {
    std::lock_guard lock(mutex_);
    auto [it, fresh] =
        names_.try_emplace(std::string(text), static_cast<uint32_t>(names_.size() + 1));
    id = it->second;
    if (!fresh) return id;
  }
  for (uint32_t part = 0; part * kNameBytes < text.size(); ++part) {
    TruthName record{static_cast<uint32_t>(RecordType::kName),
                     id,
                     part,
                     static_cast<uint32_t>(text.size()),
                     {}};
    std::string_view piece = text.substr(part * kNameBytes, kNameBytes);
    std::memcpy(record.text, piece.data(), piece.size());
    auto* place = reinterpret_cast<TruthName*>(slot());
    if (place != nullptr) publish(place, record);
  }
  return id;
}

void TruthLog::abandon() {
  base_ = nullptr;
  generation_.fetch_add(1, std::memory_order_relaxed);
  names_.clear();
}

}  // namespace lull::sim
