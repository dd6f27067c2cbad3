// CRC-32C (Castagnoli), the checksum of the spool's records.
#pragma once

#include <cstdint>
#include <string_view>

namespace lull {

uint32_t Crc32c(std::string_view data, uint32_t crc = 0);  // `crc`: of what came before

}  // namespace lull
