#include "tests/preload/cupti/fake_cupti.h"

#include <time.h>

#include <cstdlib>

namespace lull::cupti {
namespace {

FakeCupti* g_fake = nullptr;

uint64_t realtime_offset() {
  timespec real, steady;
  clock_gettime(CLOCK_REALTIME, &real);
  clock_gettime(CLOCK_MONOTONIC, &steady);
  auto ns = [](const timespec& t) { return t.tv_sec * 1'000'000'000ull + t.tv_nsec; };
  return ns(real) - ns(steady);
}

}  // namespace

FakeCuptiScope::FakeCuptiScope() { g_fake = new FakeCupti; }
FakeCuptiScope::~FakeCuptiScope() {
  delete g_fake;
  g_fake = nullptr;
}

FakeCupti& FakeCupti::instance() { return *g_fake; }

uint64_t FakeCupti::at(uint64_t monotonic) const {
  if (rate != 0) return rate * monotonic + static_cast<uint64_t>(offset);
  return monotonic + realtime_offset() + static_cast<uint64_t>(offset);
}
uint64_t FakeCupti::now() const { return at(monotonic_ns()); }

// CUDA 11.8 | 12.x | 13.0 (cupti_activity.h and cupti_activity_deprecated.h).
size_t FakeCupti::size_of(Kind kind, uint32_t version) {
  int column = version >= 130000 ? 2 : version >= 19 ? 1 : 0;
  auto pick = [&](size_t a, size_t b, size_t c) {
    return column == 0 ? a : column == 1 ? b : c;
  };
  switch (kind) {
    case Kind::kConcurrentKernel:
      return pick(200, 208, 216);
    case Kind::kMemcpy:
      return pick(88, 88, 96);
    case Kind::kMemcpyPeer:
      return pick(88, 96, 96);
    case Kind::kMemset:
      return 88;
    case Kind::kRuntime:
    case Kind::kDriver:
      return 40;
    case Kind::kSynchronization:
      return pick(40, 40, 56);
    case Kind::kGraphTrace:
      return pick(48, 48, 56);
  }
  return 64;  // of kinds that lull does not ask for
}

void FakeCupti::append(const void* record, size_t size, Kind kind) {
  size_t whole = size_of(kind, version);
  if (buffer_ != nullptr && used_ + whole > room_) complete();
  if (buffer_ == nullptr) {
    size_t most = 0;
    ++requests_;
    requested(&buffer_, &room_, &most);
    used_ = 0;
  }
  memset(buffer_ + used_, 0xee, whole);  // what lull must not read
  memcpy(buffer_ + used_, record, size < whole ? size : whole);
  used_ += whole;
}

void FakeCupti::complete() {
  uint8_t* buffer = buffer_;
  buffer_ = nullptr;
  if (buffer != nullptr) completed(nullptr, 0, buffer, room_, used_);
}

void FakeCupti::forget() {
  buffer_ = nullptr;
  requested = nullptr;
  completed = nullptr;
  enabled.clear();
}

Result FakeCupti::next_record(uint8_t* buffer, size_t valid, Activity** record) const {
  size_t at = 0;
  if (*record != nullptr) {
    at = static_cast<size_t>(reinterpret_cast<uint8_t*>(*record) - buffer) +
         size_of((*record)->kind, version);
  }
  if (at + sizeof(Activity) > valid) return kNoMoreRecords;
  *record = reinterpret_cast<Activity*>(buffer + at);
  return kSuccess;
}

Result FakeCupti::call(const std::string& what) {
  auto found = failures.find(what);
  return found == failures.end() ? kSuccess : found->second;
}

Api FakeCupti::api() {
  static auto fake = [] { return g_fake; };
  Api api = {};
  api.version = g_fake->version;
  api.get_version = [](uint32_t* out) {
    *out = fake()->version;
    return fake()->call("cuptiGetVersion");
  };
  api.get_timestamp = [](uint64_t* out) {
    *out = fake()->now();
    return fake()->call("cuptiGetTimestamp");
  };
  api.register_callbacks = [](BufferRequested requested, BufferCompleted completed) {
    fake()->calls.push_back("register");
    Result result = fake()->call("cuptiActivityRegisterCallbacks");
    if (result != kSuccess) return result;
    fake()->requested = requested;
    fake()->completed = completed;
    return result;
  };
  api.enable = [](Kind kind) {
    std::string number = std::to_string(static_cast<uint32_t>(kind));
    fake()->calls.push_back("enable " + number);
    Result result = fake()->call("cuptiActivityEnable:" + number);
    if (result == kSuccess) fake()->enabled.insert(static_cast<uint32_t>(kind));
    return result;
  };
  api.disable = [](Kind kind) {
    std::string number = std::to_string(static_cast<uint32_t>(kind));
    fake()->calls.push_back("disable " + number);
    fake()->enabled.erase(static_cast<uint32_t>(kind));
    return fake()->call("cuptiActivityDisable:" + number);
  };
  api.flush_all = [](uint32_t flag) {
    fake()->calls.push_back("flush " + std::to_string(flag));
    if (fake()->before_flush) fake()->before_flush();
    Result result = fake()->call("cuptiActivityFlushAll");
    if (result == kSuccess && (flag == kFlushForced || !fake()->unfinished)) {
      fake()->complete();
    }
    if (fake()->after_flush) fake()->after_flush();
    return result;
  };
  api.get_next_record = [](uint8_t* buffer, size_t valid, Activity** record) {
    return fake()->next_record(buffer, valid, record);
  };
  api.get_dropped = [](void*, uint32_t, size_t* out) {
    *out = fake()->dropped;
    fake()->dropped = 0;
    return fake()->call("cuptiActivityGetNumDroppedRecords");
  };
  api.get_callback_name = [](Domain domain, uint32_t callback, const char** name) {
    static const std::map<uint32_t, const char*> kRuntime = {
        {17, "cudaGetDevice_v3020"}, {211, "cudaLaunchKernel_v7000"}};
    static const std::map<uint32_t, const char*> kDriver = {{307, "cuLaunchKernel"},
                                                            {277, "cuMemcpyHtoD_v2"}};
    const auto& names = domain == Domain::kRuntime ? kRuntime : kDriver;
    auto found = names.find(callback);
    if (found == names.end()) return 1;
    *name = found->second;
    return kSuccess;
  };
  api.flush_period = [](uint32_t ms) {
    fake()->calls.push_back("period " + std::to_string(ms));
    return kSuccess;
  };
  api.set_thread_id_type = [](int type) {
    fake()->thread_id_type = type;
    return kSuccess;
  };
  api.get_thread_id_type = [](int* type) {
    *type = fake()->thread_id_type;
    return kSuccess;
  };
  api.subscribe = [](void** out, void*, void*) {
    fake()->calls.push_back("subscribe");
    *out = fake();
    return fake()->call("cuptiSubscribe");
  };
  api.unsubscribe = [](void*) { return fake()->call("cuptiUnsubscribe"); };
  api.finalize = [] {
    fake()->calls.push_back("finalize");
    if (fake()->while_finalized) fake()->while_finalized();
    Result result = fake()->call("cuptiFinalize");
    if (result == kSuccess) fake()->forget();
    return result;
  };
  return api;
}

}  // namespace lull::cupti
