#include "daemon/base/crc32c.h"

#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <array>

namespace lull {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    }
    table[byte] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t Portable(std::string_view data, uint32_t state) {
  for (unsigned char byte : data) state = (state >> 8) ^ kTable[(state ^ byte) & 0xff];
  return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t Hardware(std::string_view data,
                                                    uint32_t state) {
  uint64_t wide = state;
  while (data.size() >= 8) {
    uint64_t word;
    memcpy(&word, data.data(), 8);
    wide = __builtin_ia32_crc32di(wide, word);
    data.remove_prefix(8);
  }
  state = static_cast<uint32_t>(wide);
  for (unsigned char byte : data) state = __builtin_ia32_crc32qi(state, byte);
  return state;
}
#elif defined(__aarch64__)
__attribute__((target("+crc"))) uint32_t Hardware(std::string_view data,
                                                  uint32_t state) {
  while (data.size() >= 8) {
    uint64_t word;
    memcpy(&word, data.data(), 8);
    state = __builtin_aarch64_crc32cx(state, word);
    data.remove_prefix(8);
  }
  for (unsigned char byte : data) state = __builtin_aarch64_crc32cb(state, byte);
  return state;
}
#endif

bool HasHardware() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#else
  return false;
#endif
}

}  // namespace

uint32_t Crc32c(std::string_view data, uint32_t crc) {
#if defined(__x86_64__) || defined(__aarch64__)
  static const bool hardware = HasHardware();
  if (hardware) return ~Hardware(data, ~crc);
#endif
  return ~Portable(data, ~crc);
}

}  // namespace lull
