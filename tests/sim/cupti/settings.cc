#include "tests/sim/cupti/settings.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/sim/engine/clock.h"

namespace lull::sim::cupti {
namespace {

#if LULL_SIM_CUPTI >= 13
constexpr uint32_t kDefaultVersion = 130001;
#else
constexpr uint32_t kDefaultVersion = 26;  // CUDA 12.8
#endif

[[noreturn]] void refuse(const char* variable) {
  fprintf(stderr, "simulated CUPTI: %s is not understood\n", variable);
  _exit(97);
}

int64_t number(const char* variable, int64_t otherwise) {
  const char* text = getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end;
  int64_t value = strtoll(text, &end, 10);
  if (*end != '\0' || value < 0) refuse(variable);
  return value;
}

// <function>:<n>:<result>, several separated by commas.
std::vector<Failure> failures() {
  constexpr char kVariable[] = "LULL_SIM_CUPTI_FAIL";
  std::vector<Failure> found;
  const char* text = getenv(kVariable);
  while (text != nullptr && *text != '\0') {
    char function[64];
    long long call;
    int result, used = 0;
    if (sscanf(text, "%63[^:]:%lld:%d%n", function, &call, &result, &used) != 3) {
      refuse(kVariable);
    }
    found.push_back({function, call, result});
    text += used;
    if (*text == ',') ++text;
  }
  return found;
}

// <ns>@<seconds after the first call of this library>.
void read_step(Settings* settings) {
  constexpr char kVariable[] = "LULL_SIM_CUPTI_CLOCK_STEP_NS";
  const char* text = getenv(kVariable);
  if (text == nullptr || *text == '\0') return;
  long long ns;
  double seconds;
  if (sscanf(text, "%lld@%lf", &ns, &seconds) != 2) refuse(kVariable);
  settings->step_ns = ns;
  settings->step_at_ns = now_ns() + static_cast<int64_t>(seconds * 1e9);
}

const Settings* read() {
  auto* settings = new Settings;
  settings->version =
      static_cast<uint32_t>(number("LULL_SIM_CUPTI_VERSION", kDefaultVersion));
  settings->failures = failures();
  settings->garbage = number("LULL_SIM_CUPTI_GARBAGE", 0);
  settings->flush_ns = 1'000 * number("LULL_SIM_CUPTI_FLUSH_US", 0);
  settings->device_room = number("LULL_SIM_CUPTI_DEVICE_RECORDS", 0);
  read_step(settings);
  return settings;
}

}  // namespace

const Settings& settings() {
  static const Settings* settings = read();
  return *settings;
}

}  // namespace lull::sim::cupti
