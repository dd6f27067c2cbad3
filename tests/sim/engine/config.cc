#include "tests/sim/engine/config.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace lull::sim {
namespace {

struct IntegerKey {
  const char* name;
  int64_t Config::*field;
  double unit;  // one of the key's units in the field's
};
constexpr IntegerKey kIntegers[] = {
    {"devices", &Config::devices, 1},
    {"memory_gib", &Config::memory_bytes, 1 << 30},
    {"kernel_us", &Config::kernel_ns, 1e3},
    {"launch_us", &Config::launch_ns, 1e3},
    {"graph_launch_us", &Config::graph_launch_ns, 1e3},
    {"latency_us", &Config::latency_ns, 1e3},
    {"concurrent_kernels", &Config::concurrent_kernels, 1},
    {"queue_depth", &Config::queue_depth, 1},
    {"copy_latency_us", &Config::copy_latency_ns, 1e3},
    {"stage_kib", &Config::stage_bytes, 1024},
    {"zero_reads_kib", &Config::zero_read_bytes, 1024},
    {"malloc_us", &Config::malloc_ns, 1e3},
    {"free_us", &Config::free_ns, 1e3},
    {"host_alloc_us", &Config::host_alloc_ns, 1e3},
    {"nccl_latency_us", &Config::nccl_latency_ns, 1e3},
    {"nccl_timeout_s", &Config::nccl_timeout_ns, 1e9},
    {"cupti_launch_ns", &Config::cupti_launch_ns, 1},
    {"cupti_stays_ns", &Config::cupti_stays_ns, 1},
};

struct RateKey {
  const char* name;
  double Config::*field;
};
constexpr RateKey kRates[] = {
    {"h2d_gbps", &Config::h2d_gbps},           {"d2h_gbps", &Config::d2h_gbps},
    {"d2d_gbps", &Config::d2d_gbps},           {"host_gbps", &Config::host_gbps},
    {"nccl_gbps", &Config::nccl_gbps},         {"tflops", &Config::tflops},
    {"tensor_tflops", &Config::tensor_tflops},
};

constexpr int64_t kLeastKernelNs = 2'000;  // starting and ending, whatever it does

constexpr std::string_view kKernelPrefix = "kernel_us.";

bool parse_number(std::string_view text, double* out) {
  std::string copy(text);
  char* end = nullptr;
  *out = strtod(copy.c_str(), &end);
  return end != copy.c_str() && *end == '\0' && std::isfinite(*out) && *out >= 0;
}

std::string_view trim(std::string_view text) {
  constexpr char kSpace[] = " \t\r\n";
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool read_file(const char* path, std::string* text) {
  FILE* file = fopen(path, "re");
  if (file == nullptr) return false;
  char buffer[4096];
  size_t n;
  while ((n = fread(buffer, 1, sizeof buffer, file)) > 0) text->append(buffer, n);
  fclose(file);
  return true;
}

}  // namespace

int64_t Config::kernel_duration(std::string_view name, int64_t otherwise) const {
  for (auto it = kernels.rbegin(); it != kernels.rend(); ++it) {
    if (name.find(it->first) != std::string_view::npos) return it->second;
  }
  return otherwise;
}

int64_t Config::work_duration(double flops, double bytes, bool tensor) const {
  double computing = flops / ((tensor ? tensor_tflops : tflops) * 1e3);
  return kLeastKernelNs + llround(std::max(computing, bytes / d2d_gbps));
}

int64_t Config::exchange_duration(double bytes) const {
  return nccl_latency_ns + llround(bytes / nccl_gbps);
}

bool Config::set(std::string_view key, std::string_view value) {
  double number;
  if (key == "cupti_clock_step_ns") {  // the one value that may be negative
    bool back = value.starts_with('-');
    if (!parse_number(value.substr(back ? 1 : 0), &number)) return false;
    cupti_clock_step_ns = llround(back ? -number : number);
    return true;
  }
  if (!parse_number(value, &number)) return false;
  if (key.starts_with(kKernelPrefix) && key.size() > kKernelPrefix.size()) {
    kernels.emplace_back(key.substr(kKernelPrefix.size()), llround(number * 1e3));
    return true;
  }
  if (key == "data") {
    data = number != 0;
    return true;
  }
  for (const IntegerKey& known : kIntegers) {
    if (key != known.name) continue;
    this->*known.field = llround(number * known.unit);
    return true;
  }
  for (const RateKey& known : kRates) {
    if (key != known.name || number == 0) continue;
    this->*known.field = number;
    return true;
  }
  return false;
}

bool Config::parse(std::string_view text, std::string* error) {
  while (!text.empty()) {
    size_t end = text.find_first_of("\n;");
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    size_t equals = line.find('=');
    if (equals == std::string_view::npos ||
        !set(trim(line.substr(0, equals)), trim(line.substr(equals + 1)))) {
      *error = line;
      return false;
    }
  }
  return true;
}

Config config_from_environment() {
  Config config;
  const char* variable = getenv("LULL_SIM_CONFIG");
  if (variable == nullptr || *variable == '\0') return config;
  std::string text = variable;
  std::string error;
  if (text.find('=') == std::string::npos) {
    text.clear();
    if (!read_file(variable, &text)) error = std::string("cannot read ") + variable;
  }
  if (!error.empty() || !config.parse(text, &error)) {
    fprintf(stderr, "simulated device: LULL_SIM_CONFIG: %s\n", error.c_str());
    _exit(97);
  }
  return config;
}

}  // namespace lull::sim
