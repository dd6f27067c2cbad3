#include "tests/sim/cupti/client_fixture.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/driver_fixture.h"

namespace lull::sim::cupti {
namespace {

std::mutex g_mutex;  // of the next
Client* g_client = nullptr;

const Api& load_api(int major) {
  static Api api{};
  std::string name = "libcupti.so." + std::to_string(major);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    _exit(2);
  }
#define X(name, parameters) \
  api.name = reinterpret_cast<int(*) parameters>(dlsym(library, #name));
  SIM_CUPTI_FUNCTIONS(X)
#undef X
  api.cuptiSubscribe_v2 = reinterpret_cast<decltype(api.cuptiSubscribe_v2)>(
      dlsym(library, "cuptiSubscribe_v2"));
  return api;
}

const Driver& start_driver() {
  const Driver* driver = load_driver();
  if (driver == nullptr || driver->start() != 0) {
    fprintf(stderr, "LD_LIBRARY_PATH does not name the simulated libcuda.so.1\n");
    _exit(2);
  }
  return *driver;
}

template <typename Function>
Function control(const char* name) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(library, name));
}

std::string log_path() { return scratch_path("cupti." + std::to_string(getpid())); }

int run_on_machine(int major, const Environment& environment,
                   const std::function<void(Machine&)>& body) {
  std::string log = scratch_path("cupti.%p");  // the folder is the parent's
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    setenv("LULL_SIM_LOG", log.c_str(), 1);
    setenv("LULL_SIM_CONFIG", "launch_us=0;cupti_launch_ns=0", 1);
    for (const auto& [key, value] : environment) {
      setenv(key.c_str(), value.c_str(), 1);
    }
    {
      Machine machine(major);
      body(machine);
    }
    fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

}  // namespace

Client::Client(const Api& api, size_t buffer_bytes)
    : api_(api), buffer_bytes_(buffer_bytes), outer_(g_client) {
  {
    std::lock_guard clients(g_mutex);
    g_client = this;
  }
  EXPECT_EQ(api.cuptiActivityRegisterCallbacks(request, complete), 0);
}

Client::~Client() {
  std::lock_guard clients(g_mutex);
  g_client = outer_;
}

void Client::request(uint8_t** buffer, size_t* size, size_t* max_records) {
  std::lock_guard clients(g_mutex);
  *buffer = nullptr;
  *size = *max_records = 0;
  if (g_client == nullptr) return;
  Client& self = *g_client;
  std::lock_guard lock(self.mutex_);
  self.requesters_.push_back(static_cast<uint32_t>(syscall(SYS_gettid)));
  *size = self.buffer_bytes_;
  if (*size == 0) return;
  ++self.requested_;
  *buffer = static_cast<uint8_t*>(aligned_alloc(8, *size));
}

void Client::complete(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  std::lock_guard clients(g_mutex);
  if (g_client == nullptr) return free(buffer);  // of one that is gone
  Client& self = *g_client;
  std::lock_guard lock(self.mutex_);
  ++self.returned_;
  void* record = nullptr;
  uint8_t* before = nullptr;
  auto keep = [&](uint8_t* end) {
    if (before != nullptr) self.seen_.emplace_back(before, end);
  };
  while (self.api_.cuptiActivityGetNextRecord(buffer, valid, &record) == 0) {
    keep(static_cast<uint8_t*>(record));
    before = static_cast<uint8_t*>(record);
  }
  keep(buffer + valid);
  free(buffer);
}

std::vector<size_t> Client::sizes(uint32_t kind) const {
  std::vector<size_t> found;
  std::lock_guard lock(mutex_);
  for (const std::string& bytes : seen_) {
    if (*reinterpret_cast<const uint32_t*>(bytes.data()) == kind) {
      found.push_back(bytes.size());
    }
  }
  return found;
}

Machine::Machine(int major) : cupti(load_api(major)), cu(start_driver()) {
  void *context = nullptr, *library = nullptr;
  EXPECT_EQ(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
  EXPECT_EQ(cu.cuCtxSetCurrent(context), 0);
  EXPECT_EQ(
      cu.cuLibraryLoadData(&library, "", nullptr, nullptr, 0, nullptr, nullptr, 0), 0);
  EXPECT_EQ(cu.cuLibraryGetKernel(&function_, library, "traced_kernel"), 0);
}

void* Machine::stream() {
  void* handle = nullptr;
  EXPECT_EQ(cu.cuStreamCreateWithPriority(&handle, 0, 0), 0);
  return handle;
}

int Machine::launch(void* stream, int64_t ns) {
  control<void (*)(int64_t)>("lull_sim_next_kernel_ns")(ns);
  return cu.cuLaunchKernel.legacy(function_, 4, 3, 2, 32, 2, 1, 1024, stream, nullptr,
                                  nullptr);
}

uint64_t Machine::device_memory(size_t bytes) {
  uint64_t address = 0;
  EXPECT_EQ(cu.cuMemAlloc_v2(&address, bytes), 0);
  return address;
}

void Machine::launch_graph(int64_t ns, int times) {
  void *where = stream(), *graph = nullptr, *exec = nullptr;
  EXPECT_EQ(cu.cuStreamBeginCapture_v2.legacy(where, 0), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(launch(where, ns), 0);
  EXPECT_EQ(cu.cuStreamEndCapture.legacy(where, &graph), 0);
  EXPECT_EQ(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
  for (int i = 0; i < times; ++i) {
    EXPECT_EQ(cu.cuGraphLaunch.legacy(exec, where), 0);
  }
}

int Machine::set(const char* key, const char* value) {
  return control<int (*)(const char*, const char*)>("lull_sim_set")(key, value);
}

bool Machine::observed() const {
  return control<int (*)()>("lull_sim_observed")() != 0;
}

std::vector<TruthRecord> Machine::ops(OpKind kind) const {
  std::vector<TruthRecord> found;
  for (const TruthRecord& record : read_truth(log_path())) {
    bool op = record.type == static_cast<uint32_t>(RecordType::kOp);
    if (op && record.kind == static_cast<uint16_t>(kind)) found.push_back(record);
  }
  return found;
}

std::vector<TruthRecord> Machine::calls() const {
  std::vector<TruthRecord> found;
  for (const TruthRecord& record : read_truth(log_path())) {
    bool call = record.type == static_cast<uint32_t>(RecordType::kApi);
    if (call && record.sub == 0) found.push_back(record);
  }
  return found;
}

void on_machine(int major, const Environment& environment,
                const std::function<void(Machine&)>& body) {
  EXPECT_EQ(run_on_machine(major, environment, body), 0);
}

void dies_on_machine(int signal, int major, const Environment& environment,
                     const std::function<void(Machine&)>& body) {
  int status = run_on_machine(major, environment, body);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
}

}  // namespace lull::sim::cupti
