#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <string>

#include "tests/sim/cupti/api.h"
#include "tests/sim/cupti/callbacks.h"
#include "tests/sim/cupti/cbids.h"
#include "tests/sim/cupti/settings.h"
#include "tests/sim/cupti/tracer.h"

using namespace lull::sim;
using namespace lull::sim::cupti;

namespace {

// CUpti_CallbackDomain.
constexpr uint32_t kDriverDomain = 1, kRuntimeDomain = 2, kDomains = 7;

// CUpti_CallbackData; parameters are not shown.
struct CallbackData {
  uint32_t site;  // 0 enter, 1 exit
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;
  void* context;
  uint32_t context_id;
  uint64_t* correlation_data;
  uint32_t correlation;
};
static_assert(sizeof(CallbackData) == 72);

using Callback = void (*)(void* userdata, uint32_t domain, uint32_t cbid,
                          const CallbackData*);

struct Subscriber {
  Callback callback = nullptr;
  void* userdata = nullptr;
  std::string name;
  std::bitset<kMaxCbid> enabled[kDomains];
};

// CUpti_SubscriberParams; the last field from 13.3 on.
struct SubscriberParams {
  size_t size;
  const char* name;
  char* old_name;
  size_t old_size;
  uint8_t allow_multiple;
};

std::mutex g_mutex;
std::atomic<bool> g_wanted{false};   // some call, by the subscriber
Subscriber* g_subscriber = nullptr;  // the handle; never freed
thread_local uint64_t t_correlation_data;

void deliver(const ApiEvent& event, uint32_t site) {
  uint32_t domain = event.runtime ? kRuntimeDomain : kDriverDomain;
  if (!g_wanted || in_client() || !event.outermost) return;
  CallbackData data{};
  uint32_t cbid;
  Callback callback;
  void* userdata;
  {
    std::lock_guard lock(g_mutex);
    if (g_subscriber == nullptr || g_subscriber->callback == nullptr) return;
    cbid = event.runtime ? runtime_cbid(event.name) : driver_cbid(event.name);
    if (cbid == 0 || !g_subscriber->enabled[domain][cbid]) return;
    callback = g_subscriber->callback;
    userdata = g_subscriber->userdata;
  }
  int result = event.result;
  data.site = site;
  data.function = event.name;
  data.result = site == 1 ? &result : nullptr;
  data.context_id = static_cast<uint32_t>(event.context);
  data.correlation_data = &t_correlation_data;
  data.correlation = static_cast<uint32_t>(event.correlation);
  callback(userdata, domain, cbid, &data);
}

int subscribe(Subscriber** out, Callback callback, void* userdata, const char* name) {
  if (out == nullptr) return kErrorInvalidParameter;
  if (int error = Tracer::get().attach()) return error;
  std::lock_guard lock(g_mutex);
  if (g_subscriber != nullptr) return kErrorMultipleSubscribers;
  g_subscriber = new Subscriber;
  g_subscriber->callback = callback;
  g_subscriber->userdata = userdata;
  g_subscriber->name = name != nullptr ? name : "";
  *out = g_subscriber;
  return kSuccess;
}

// With g_mutex. The driver is observed for a subscriber that wants some call.
void note_wanted() {
  g_wanted =
      g_subscriber != nullptr &&
      std::any_of(std::begin(g_subscriber->enabled), std::end(g_subscriber->enabled),
                  [](const auto& set) { return set.any(); });
}

// Sets one callback of a domain, or (0) all of them.
int enable(uint32_t on, const Subscriber* subscriber, uint32_t domain, uint32_t cbid) {
  {
    std::lock_guard lock(g_mutex);
    bool valid = subscriber != nullptr && subscriber == g_subscriber && domain != 0 &&
                 domain < kDomains && cbid < kMaxCbid;
    if (!valid) return kErrorInvalidParameter;
    auto& set = g_subscriber->enabled[domain];
    if (cbid != 0) {
      set[cbid] = on != 0;
    } else if (on != 0) {
      set.set();
    } else {
      set.reset();
    }
    note_wanted();
  }
  return Tracer::get().observe() ? kSuccess : kErrorUnknown;
}

}  // namespace

namespace lull::sim::cupti {

void callbacks_enter(const ApiEvent& event) { deliver(event, 0); }
void callbacks_exit(const ApiEvent& event) { deliver(event, 1); }
bool callbacks_wanted() { return g_wanted; }

}  // namespace lull::sim::cupti

SIM_EXPORT int cuptiSubscribe(Subscriber** out, Callback callback, void* userdata) {
  CUPTI_V1_CALL();
  return finish(subscribe(out, callback, userdata, nullptr));
}

#if LULL_SIM_CUPTI >= 13
constexpr size_t kParamsBefore133 = 32;

SIM_EXPORT int cuptiSubscribe_v2(Subscriber** out, Callback callback, void* userdata,
                                 SubscriberParams* params) {
  CUPTI_CALL();
  if (params != nullptr && params->size < kParamsBefore133) {
    return finish(kErrorInvalidParameter);
  }
  bool several = params != nullptr && params->size > kParamsBefore133 &&
                 params->allow_multiple != 0;
  if (several) {
    if (int error = use_v2()) return error;
  }
  const char* name = params != nullptr ? params->name : nullptr;
  int error = subscribe(out, callback, userdata, name);
  bool tell = error == kErrorMultipleSubscribers && params != nullptr &&
              params->old_name != nullptr;
  if (tell) {
    std::lock_guard lock(g_mutex);
    const char* holder = g_subscriber != nullptr ? g_subscriber->name.c_str() : "";
    snprintf(params->old_name, params->old_size, "CUPTI for %s", holder);
  }
  return finish(error);
}
#endif

SIM_EXPORT int cuptiUnsubscribe(Subscriber* subscriber) {
  CUPTI_CALL();
  {
    std::lock_guard lock(g_mutex);
    if (subscriber == nullptr || subscriber != g_subscriber) {
      return finish(kErrorInvalidParameter);
    }
    g_subscriber = nullptr;
    note_wanted();
  }
  Tracer::get().observe();
  return kSuccess;
}

SIM_EXPORT int cuptiEnableCallback(uint32_t on, Subscriber* subscriber, uint32_t domain,
                                   uint32_t cbid) {
  CUPTI_CALL();
  if (cbid == 0) return finish(kErrorInvalidParameter);
  return finish(enable(on, subscriber, domain, cbid));
}

SIM_EXPORT int cuptiEnableDomain(uint32_t on, Subscriber* subscriber, uint32_t domain) {
  CUPTI_CALL();
  return finish(enable(on, subscriber, domain, 0));
}

SIM_EXPORT int cuptiEnableAllDomains(uint32_t on, Subscriber* subscriber) {
  CUPTI_CALL();
  for (uint32_t domain = 1; domain < kDomains; ++domain) {
    if (int error = enable(on, subscriber, domain, 0)) return finish(error);
  }
  return kSuccess;
}

SIM_EXPORT int cuptiSupportedDomains(size_t* count, const uint32_t** domains) {
  CUPTI_CALL();
  if (count == nullptr || domains == nullptr) return finish(kErrorInvalidParameter);
  static constexpr uint32_t kSupported[] = {kDriverDomain, kRuntimeDomain};
  *count = 2;
  *domains = kSupported;
  return kSuccess;
}

SIM_EXPORT int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char** name) {
  CUPTI_CALL();
  if (name == nullptr) return finish(kErrorInvalidParameter);
  *name = domain == kRuntimeDomain  ? runtime_name(cbid)
          : domain == kDriverDomain ? driver_name(cbid)
                                    : nullptr;
  return finish(*name != nullptr ? kSuccess : kErrorInvalidParameter);
}
