// The bytes of a spool file.
//
//   file    := magic record*
//   magic   := "LULLSPL1"
//   record  := length:u32 crc:u32 sequence:u64 kind:u8 body:bytes[length]
//
// Little endian. crc is CRC-32C over sequence, kind and body. The first record of
// a file is a checkpoint; a file without a whole checkpoint holds nothing (its
// writer died while it began the file). What follows the last whole record is the
// torn end of a write and is cut off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lull::relay {

inline constexpr std::string_view kSpoolMagic = "LULLSPL1";
inline constexpr size_t kRecordHeaderSize = 4 + 4 + 8 + 1;
inline constexpr uint32_t kMaxRecordBody = 16u << 20;

enum class RecordKind : uint8_t { kCheckpoint = 1, kBatch = 2 };

struct RecordHeader {
  uint32_t length = 0;
  uint32_t crc = 0;
  uint64_t sequence = 0;
  RecordKind kind = RecordKind::kBatch;
};

struct Record {
  RecordHeader header;
  std::string_view body;  // into the bytes that were parsed
};

std::string EncodeRecord(RecordKind kind, uint64_t sequence, std::string_view body);

// The header at the front of `bytes`; nullopt when it is cut short or no header.
std::optional<RecordHeader> DecodeHeader(std::string_view bytes);

// Takes the record at the front of `*bytes` off; nullopt (and `*bytes` as it was)
// when there is no whole, undamaged record.
std::optional<Record> TakeRecord(std::string_view* bytes);

}  // namespace lull::relay
