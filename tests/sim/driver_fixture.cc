#include "tests/sim/driver_fixture.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace lull::sim {
namespace {

// The log must be asked for before the driver starts.
const Driver& driver_with_log() {
  static const Driver* driver = [] {
    setenv("LULL_SIM_LOG", scratch_path("truth.%p").c_str(), 1);
    setenv("LULL_SIM_CONFIG", "launch_us=0", 1);
    return load_driver();
  }();
  if (driver == nullptr || driver->start() != 0) {
    fprintf(stderr, "LD_LIBRARY_PATH does not name the simulated libcuda.so.1\n");
    _exit(1);
  }
  return *driver;
}

std::string own_log() { return scratch_path("truth." + std::to_string(getpid())); }

// Made on first use; removed at exit, by the process that made it alone.
class ScratchFolder {
 public:
  ScratchFolder() {
    char text[] = "/tmp/lull_sim_test.XXXXXX";
    path_ = mkdtemp(text);
  }
  ~ScratchFolder() {
    if (getpid() == owner_) std::filesystem::remove_all(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  pid_t owner_ = getpid();
  std::string path_;
};

template <typename Function>
void find(const char* name, Function* out) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *out = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::string scratch_path(const std::string& name) {
  static const ScratchFolder folder;
  return folder.path() + "/" + name;
}

std::vector<TruthRecord> read_truth(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string data(std::istreambuf_iterator<char>(file), {});
  std::vector<TruthRecord> records;
  if (data.size() < kHeaderBytes) return records;
  TruthHeader header;
  std::memcpy(&header, data.data(), sizeof header);
  EXPECT_EQ(header.magic, kTruthMagic);
  EXPECT_EQ(header.dropped, 0u);
  for (uint64_t chunk = 0; chunk < header.chunks; ++chunk) {
    uint64_t begin = kHeaderBytes + chunk * kChunkBytes;
    for (uint64_t at = begin; at < begin + kChunkBytes; at += sizeof(TruthRecord)) {
      TruthRecord record;
      std::memcpy(&record, data.data() + at, sizeof record);
      if (record.type == 0) break;
      records.push_back(record);
    }
  }
  return records;
}

DriverTest::DriverTest() : cu(driver_with_log()) {
  find("lull_sim_next_kernel_ns", &next_kernel_ns_);
  find("lull_sim_set", &set_);
  find("lull_sim_blocked_ns", &blocked_ns_);
  void* context = nullptr;
  EXPECT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
  EXPECT_EQ(cu.cuCtxSetCurrent(context), 0);
  EXPECT_EQ(cu.cuCtxSynchronize(), 0);
  void* library = nullptr;
  EXPECT_EQ(
      cu.cuLibraryLoadData(&library, "", nullptr, nullptr, 0, nullptr, nullptr, 0), 0);
  EXPECT_EQ(cu.cuLibraryGetKernel(&function_, library, "test_kernel"), 0);
  for (const TruthRecord& record : read_truth(own_log())) {
    if (record.type == static_cast<uint32_t>(RecordType::kName)) continue;
    first_correlation_ = std::max(first_correlation_, record.correlation + 1);
  }
}

DriverTest::~DriverTest() {
  cu.cuCtxSynchronize();
  for (const auto& [key, value] : defaults_) set_(key.c_str(), value.c_str());
}

void DriverTest::configure(const char* key, const char* value,
                           const char* default_value) {
  defaults_.emplace_back(key, default_value);
  ASSERT_EQ(set_(key, value), 1);
}

void* DriverTest::stream(bool blocking) {
  void* handle = nullptr;
  EXPECT_EQ(cu.cuStreamCreateWithPriority(&handle, blocking ? 0 : 1, 0), 0);
  return handle;
}

void* DriverTest::event() {
  void* handle = nullptr;
  EXPECT_EQ(cu.cuEventCreate(&handle, 0), 0);
  return handle;
}

uint64_t DriverTest::device_memory(size_t bytes) {
  uint64_t address = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&address, bytes), 0);
  return address;
}

void* DriverTest::pinned_memory(size_t bytes) {
  void* pointer = nullptr;
  EXPECT_EQ(cu.cuMemHostAlloc(&pointer, bytes, 0), 0);
  return pointer;
}

int DriverTest::launch(void* stream, int64_t ns) {
  next_kernel_ns_(ns);
  return cu.cuLaunchKernel.legacy(function_, 1, 1, 1, 32, 1, 1, 0, stream, nullptr,
                                  nullptr);
}

int DriverTest::launch_per_thread(void* stream, int64_t ns) {
  next_kernel_ns_(ns);
  return cu.cuLaunchKernel.per_thread(function_, 1, 1, 1, 32, 1, 1, 0, stream, nullptr,
                                      nullptr);
}

std::vector<TruthRecord> DriverTest::ops() const {
  std::vector<TruthRecord> found;
  for (const TruthRecord& record : read_truth(own_log())) {
    if (record.type != static_cast<uint32_t>(RecordType::kOp)) continue;
    if (record.correlation >= first_correlation_) found.push_back(record);
  }
  std::ranges::stable_sort(found, {}, &TruthRecord::extra);  // time of submission
  return found;
}

std::vector<TruthRecord> DriverTest::kernels() const {
  std::vector<TruthRecord> found = ops();
  std::erase_if(found, [](const TruthRecord& op) { return op.kind != 1; });
  return found;
}

}  // namespace lull::sim
