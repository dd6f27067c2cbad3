#include "preload/cupti/devices.h"

#include <string.h>

#include <atomic>

#include "preload/cupti/entries.h"
#include "preload/stacks/interning.h"
#include "preload/support/libdl.h"

namespace lull::cupti {
namespace {

// CUdevice_attribute.
enum Attribute : int {
  kWarpSize = 10,
  kMultiprocessors = 16,
  kMaxThreadsPerMultiprocessor = 39,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxSharedPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxBlocksPerMultiprocessor = 106,
};
constexpr int kRelaxedCapture = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int kDeinitialized = 4;   // CUDA_ERROR_DEINITIALIZED
constexpr size_t kNameSize = 256;
constexpr char kLibrary[] = "libcuda.so.1";
// Asked for by CUPTI 12.4, 12.8, 13.2 and 13.3 before anything else.
constexpr uint8_t kTableForTools[16] = {0x7c, 0xb6, 0x3f, 0x9b, 0x9c, 0xa4, 0x8e, 0x42,
                                        0xa4, 0x84, 0xbe, 0xb6, 0x6e, 0x6a, 0xed, 0x7f};

struct Driver {
  int (*count)(int*);
  int (*get)(int* device, int ordinal);
  int (*name)(char*, int size, int device);
  int (*attribute)(int*, int attribute, int device);
  int (*total_bytes)(size_t*, int device);
  int (*exchange_capture_mode)(int*);
  int (*primary_context)(int device, unsigned* flags, int* active);  // may be null
};

Driver g_driver;
std::atomic<uint32_t> g_found{0};  // 1 once g_driver is complete

template <typename Function>
bool look_up(libdl::Dlsym dlsym, void* library, const char* name, Function** slot) {
  *slot = reinterpret_cast<Function*>(dlsym(library, name));
  return *slot != nullptr;
}

// Two threads may fill it at once: with the same values.
const Driver* driver() {
  if (g_found.load(std::memory_order_acquire) != 0) return &g_driver;
  libdl::Dlsym dlsym = libdl::real_dlsym();
  if (dlsym == nullptr) return nullptr;
  void* library = libdl::open(kLibrary, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library == nullptr) {
    libdl::error();
    return nullptr;
  }
  bool complete =
      look_up(dlsym, library, "cuDeviceGetCount", &g_driver.count) &&
      look_up(dlsym, library, "cuDeviceGet", &g_driver.get) &&
      look_up(dlsym, library, "cuDeviceGetName", &g_driver.name) &&
      look_up(dlsym, library, "cuDeviceGetAttribute", &g_driver.attribute) &&
      look_up(dlsym, library, "cuDeviceTotalMem_v2", &g_driver.total_bytes) &&
      look_up(dlsym, library, "cuThreadExchangeStreamCaptureMode",
              &g_driver.exchange_capture_mode);
  look_up(dlsym, library, "cuDevicePrimaryCtxGetState", &g_driver.primary_context);
  libdl::error();
  libdl::close(library);
  if (!complete) return nullptr;
  g_found.store(1, std::memory_order_release);
  return &g_driver;
}

uint32_t attribute_of(const Driver& driver, int device, Attribute which) {
  int value = 0;
  if (driver.attribute(&value, which, device) != 0 || value < 0) return 0;
  return static_cast<uint32_t>(value);
}

abi::Ref intern_device(char* segment, const Driver& driver, int ordinal, int device) {
  char name[kNameSize] = {};
  driver.name(name, kNameSize - 1, device);
  size_t bytes = 0;
  driver.total_bytes(&bytes, device);
  auto attribute = [&](Attribute which) { return attribute_of(driver, device, which); };
  abi::GpuDeviceEntry entry = {};
  entry.header.kind = abi::EntryKind::kGpuDevice;
  entry.name = intern_text(segment, name, strlen(name));
  entry.device = static_cast<uint32_t>(ordinal);
  entry.multiprocessors = attribute(kMultiprocessors);
  entry.max_threads_per_multiprocessor = attribute(kMaxThreadsPerMultiprocessor);
  entry.max_blocks_per_multiprocessor = attribute(kMaxBlocksPerMultiprocessor);
  entry.max_registers_per_multiprocessor = attribute(kMaxRegistersPerMultiprocessor);
  entry.max_shared_bytes_per_multiprocessor = attribute(kMaxSharedPerMultiprocessor);
  entry.warp_size = attribute(kWarpSize);
  entry.compute_capability =
      10 * attribute(kCapabilityMajor) + attribute(kCapabilityMinor);
  entry.total_bytes = bytes;
  return intern_entry(segment, &entry, sizeof entry);
}

}  // namespace

uint32_t describe_devices(char* segment, uint64_t now, abi::Event* events) {
  const Driver* cuda = driver();
  int count = 0;
  if (cuda == nullptr || cuda->count(&count) != 0) return 0;
  uint32_t made = 0;
  for (int ordinal = 0; ordinal < count && made < kMostDevices; ++ordinal) {
    int device = 0;
    if (cuda->get(&device, ordinal) != 0) continue;
    abi::Event& event = events[made++];
    event = {};
    event.start_ns = now;
    event.type = abi::EventType::kGpuDevice;
    event.arg2 = static_cast<uint32_t>(ordinal);
    event.py_stack = intern_device(segment, *cuda, ordinal, device);
  }
  return made;
}

CaptureTolerated::CaptureTolerated() : mode_(kRelaxedCapture), exchanged_(false) {
  const Driver* cuda = driver();
  exchanged_ = cuda != nullptr && cuda->exchange_capture_mode(&mode_) == 0;
}

CaptureTolerated::~CaptureTolerated() {
  if (exchanged_) driver()->exchange_capture_mode(&mode_);
}

bool one_device_is_used() {
  static std::atomic<int> devices{0};
  const Driver* cuda = driver();
  int count = devices.load(std::memory_order_relaxed);
  if (cuda == nullptr || (count == 0 && cuda->count(&count) != 0)) return false;
  devices.store(count, std::memory_order_relaxed);
  if (count <= 1) return count == 1;
  int used = 0;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    int device = 0, active = 0;
    unsigned flags = 0;
    if (cuda->primary_context == nullptr || cuda->get(&device, ordinal) != 0 ||
        cuda->primary_context(device, &flags, &active) != 0) {
      return false;
    }
    used += active != 0 ? 1 : 0;
  }
  return used == 1;
}

bool load_driver() {
  static std::atomic<bool> loaded{false};
  if (loaded.load(std::memory_order_relaxed)) return true;
  if (!libdl::available()) return false;
  void* library = libdl::open(kLibrary, RTLD_LAZY | RTLD_LOCAL);  // stays
  if (library == nullptr) {
    libdl::error();
    return false;
  }
  loaded.store(true, std::memory_order_relaxed);
  return true;
}

bool driver_serves_tools() {
  libdl::Dlsym dlsym = libdl::real_dlsym();
  if (dlsym == nullptr) return false;
  void* library = libdl::open(kLibrary, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (library == nullptr) {
    libdl::error();
    return false;
  }
  int (*get_export_table)(const void** table, const void* id) = nullptr;
  const void* table = nullptr;
  bool served = look_up(dlsym, library, "cuGetExportTable", &get_export_table) &&
                get_export_table(&table, kTableForTools) == 0 && table != nullptr;
  libdl::error();
  libdl::close(library);
  return served;
}

bool driver_is_alive() {
  const Driver* cuda = driver();
  int count = 0;
  return cuda != nullptr && cuda->count(&count) != kDeinitialized;
}

}  // namespace lull::cupti
