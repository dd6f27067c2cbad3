#include "preload/cupti/library.h"

#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "preload/cupti/devices.h"
#include "preload/support/decimal.h"
#include "preload/support/libdl.h"
#include "preload/support/text.h"

namespace lull::cupti {
namespace {

constexpr size_t kPathSize = 4096;
constexpr int kMostCopies = 8;
constexpr const char* kSonames[] = {"libcupti.so.13", "libcupti.so.12",
                                    "libcupti.so.11.8"};
// Where CUPTI lies, seen from the folder of libcudart or of PyTorch's libraries: in
// the same folder, in a toolkit, in a wheel of its own.
constexpr const char* kFolders[] = {
    "", "/../extras/CUPTI/lib64", "/../../cuda_cupti/lib",
    "/../../nvidia/cuda_cupti/lib", "/../../nvidia/cu13/lib"};
constexpr const char* kNeighbours[] = {"libcudart", "libtorch_cpu.so",
                                       "libtorch_cuda.so", "libtorch.so"};

struct Path {
  char text[kPathSize];
};

// What is mapped and may matter, with its major version: 0 where the name tells none.
struct Mapped {
  Path copies[kMostCopies];
  int majors[kMostCopies];
  int copy_count = 0;
  Path neighbours[kMostCopies];
  int neighbour_count = 0;
  int cudart_major = 0;
};

// 12 of "libcudart.so.12", "libcupti-abc.so.12.4.127".
int major_of(const char* name) {
  const char* so = strstr(name, ".so.");
  if (so == nullptr) return 0;
  so += 4;
  return take_decimal(&so);
}

bool keep(const char* path, Path* places, int* count) {
  size_t size = strlen(path);
  if (*count == kMostCopies || size >= kPathSize) return false;
  memcpy(places[*count].text, path, size + 1);
  ++*count;
  return true;
}

int look_at(dl_phdr_info* info, size_t, void* data) {
  auto* mapped = static_cast<Mapped*>(data);
  if (info->dlpi_name == nullptr) return 0;
  const char* slash = strrchr(info->dlpi_name, '/');
  if (slash == nullptr) return 0;
  const char* name = slash + 1;
  if (starts_with(name, "libcupti")) {
    int major = major_of(name);
    if (keep(info->dlpi_name, mapped->copies, &mapped->copy_count)) {
      mapped->majors[mapped->copy_count - 1] = major;
    }
    return 0;
  }
  if (starts_with(name, "libcudart")) mapped->cudart_major = major_of(name);
  for (const char* neighbour : kNeighbours) {
    if (!starts_with(name, neighbour)) continue;
    keep(info->dlpi_name, mapped->neighbours, &mapped->neighbour_count);
    break;
  }
  return 0;
}

void* open_mapped(const Mapped& mapped) {
  for (bool fitting : {true, false}) {
    for (int i = 0; i < mapped.copy_count; ++i) {
      bool fits = mapped.cudart_major == 0 || mapped.majors[i] == 0 ||
                  mapped.majors[i] == mapped.cudart_major;
      if (fits != fitting) continue;
      void* handle = libdl::open(mapped.copies[i].text, RTLD_LAZY | RTLD_NOLOAD);
      if (handle != nullptr) return handle;
    }
  }
  return nullptr;
}

// <folder of neighbour><folder>/<soname>, opened. RTLD_LOCAL: nobody else's look-ups
// may meet it.
void* open_in(const char* neighbour, const char* folder, const char* soname) {
  char path[kPathSize + 128];
  auto size = static_cast<size_t>(strrchr(neighbour, '/') - neighbour);
  memcpy(path, neighbour, size);
  size_t folder_size = strlen(folder);
  memcpy(path + size, folder, folder_size);
  path[size + folder_size] = '/';
  strcpy(path + size + folder_size + 1, soname);
  return libdl::open(path, RTLD_LAZY | RTLD_LOCAL);
}

// A library of another major version than the runtime's would still trace, but the
// one that was installed with it is tested with it.
bool fits(const Mapped& mapped, const char* soname) {
  return mapped.cudart_major == 0 || major_of(soname) == mapped.cudart_major;
}

void* open_beside(const Mapped& mapped) {
  for (int i = 0; i < mapped.neighbour_count; ++i) {
    for (const char* folder : kFolders) {
      for (const char* soname : kSonames) {
        if (!fits(mapped, soname)) continue;
        void* handle = open_in(mapped.neighbours[i].text, folder, soname);
        if (handle != nullptr) return handle;
      }
    }
  }
  return nullptr;
}

void* open_on_path(const Mapped& mapped) {
  for (bool fitting : {true, false}) {
    for (const char* soname : kSonames) {
      if (fits(mapped, soname) != fitting) continue;
      void* handle = libdl::open(soname, RTLD_LAZY | RTLD_LOCAL);
      if (handle != nullptr) return handle;
    }
  }
  return nullptr;
}

void* open_library() {
  // Too large for a stack that may be small, and only needed here.
  auto* mapped = static_cast<Mapped*>(calloc(1, sizeof(Mapped)));
  if (mapped == nullptr) return nullptr;
  dl_iterate_phdr(look_at, mapped);
  void* handle = open_mapped(*mapped);
  if (handle == nullptr) handle = open_beside(*mapped);
  if (handle == nullptr) handle = open_on_path(*mapped);
  libdl::error();  // failures on the way leave no message to the program
  free(mapped);
  return handle;
}

template <typename Function>
bool look_up(libdl::Dlsym dlsym, void* library, const char* name, Function** slot) {
  *slot = reinterpret_cast<Function*>(dlsym(library, name));
  return *slot != nullptr;
}

bool resolve(libdl::Dlsym dlsym, void* library, Api* api) {
  look_up(dlsym, library, "cuptiActivityFlushPeriod", &api->flush_period);
  look_up(dlsym, library, "cuptiSetThreadIdType", &api->set_thread_id_type);
  look_up(dlsym, library, "cuptiGetThreadIdType", &api->get_thread_id_type);
  look_up(dlsym, library, "cuptiActivityEnableRuntimeApi", &api->enable_runtime_api);
  look_up(dlsym, library, "cuptiActivityEnableDriverApi", &api->enable_driver_api);
  look_up(dlsym, library, "cuptiSubscribe", &api->subscribe);
  look_up(dlsym, library, "cuptiUnsubscribe", &api->unsubscribe);
  look_up(dlsym, library, "cuptiFinalize", &api->finalize);
  libdl::error();
  return look_up(dlsym, library, "cuptiGetVersion", &api->get_version) &&
         look_up(dlsym, library, "cuptiGetTimestamp", &api->get_timestamp) &&
         look_up(dlsym, library, "cuptiActivityRegisterCallbacks",
                 &api->register_callbacks) &&
         look_up(dlsym, library, "cuptiActivityEnable", &api->enable) &&
         look_up(dlsym, library, "cuptiActivityDisable", &api->disable) &&
         look_up(dlsym, library, "cuptiActivityFlushAll", &api->flush_all) &&
         look_up(dlsym, library, "cuptiActivityGetNextRecord", &api->get_next_record) &&
         look_up(dlsym, library, "cuptiActivityGetNumDroppedRecords",
                 &api->get_dropped) &&
         look_up(dlsym, library, "cuptiGetCallbackName", &api->get_callback_name);
}

// One of 13.x, by a function that 12.8 has not got: nothing may be called yet.
bool is_13(libdl::Dlsym dlsym, void* library) {
  bool is = dlsym(library, "cuptiActivityGetNvtxExtPayloadAttr") != nullptr;
  libdl::error();
  return is;
}

}  // namespace

abi::CuptiState load_library(Api* api, Result* result) {
  *result = kSuccess;
  if (!load_driver()) return abi::CuptiState::kUnused;
  libdl::Dlsym dlsym = libdl::real_dlsym();
  void* library = dlsym == nullptr ? nullptr : open_library();
  if (library == nullptr) return abi::CuptiState::kNoLibrary;
  if (!resolve(dlsym, library, api)) {
    libdl::error();
    return abi::CuptiState::kTooOld;
  }
  if (is_13(dlsym, library) && !driver_serves_tools()) {
    *result = kNotInitialized;
    return abi::CuptiState::kFailed;
  }
  *result = api->get_version(&api->version);
  if (*result != kSuccess) return abi::CuptiState::kFailed;
  return api->version < kOldestVersion ? abi::CuptiState::kTooOld
                                       : abi::CuptiState::kReady;
}

}  // namespace lull::cupti
