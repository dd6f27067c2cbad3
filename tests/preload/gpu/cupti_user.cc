// Preloaded behind liblull.so: another user of CUPTI, that comes before the program
// begins. LULL_TEST_CUPTI_USER says what it does: it `subscribes`, `has_subscribed`, or
// `has_traced`. It prints that once it is done.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace {

template <typename... Arguments>
bool call(const char* name, Arguments... arguments) {
  static void* cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_GLOBAL);
  auto* function = reinterpret_cast<int (*)(Arguments...)>(
      cupti == nullptr ? nullptr : dlsym(cupti, name));
  return function != nullptr && function(arguments...) == 0;
}

void no_callback(void*, int, unsigned, const void*) {}

bool use(const std::string& how) {
  constexpr unsigned kMemset = 2, kForced = 1;
  if (how == "has_traced") {
    return call("cuptiActivityEnable", kMemset) &&
           call("cuptiActivityDisable", kMemset) &&
           call("cuptiActivityFlushAll", kForced);
  }
  static void* subscriber = nullptr;
  return call("cuptiSubscribe", &subscriber, &no_callback,
              static_cast<void*>(nullptr)) &&
         (how == "subscribes" || call("cuptiUnsubscribe", subscriber));
}

__attribute__((constructor)) void come() {
  const char* how = getenv("LULL_TEST_CUPTI_USER");
  const std::string said =
      how != nullptr && use(how) ? std::string(how) + "\n" : "failed\n";
  if (write(1, said.data(), said.size()) < 0) _exit(1);
}

}  // namespace
