#include "daemon/relay/deliver/spool_format.h"

#include <string.h>

#include "daemon/base/crc32c.h"

namespace lull::relay {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

constexpr size_t kChecked = 8;  // sequence and all behind it is under the checksum

template <typename T>
T Load(std::string_view bytes, size_t at) {
  T value;
  memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

}  // namespace

std::string EncodeRecord(RecordKind kind, uint64_t sequence, std::string_view body) {
  std::string record(kRecordHeaderSize, '\0');
  record.reserve(kRecordHeaderSize + body.size());
  uint32_t length = static_cast<uint32_t>(body.size());
  memcpy(record.data(), &length, sizeof(length));
  memcpy(record.data() + 8, &sequence, sizeof(sequence));
  record[16] = static_cast<char>(kind);
  record.append(body);
  uint32_t crc = Crc32c(std::string_view(record).substr(kChecked));
  memcpy(record.data() + 4, &crc, sizeof(crc));
  return record;
}

std::optional<RecordHeader> DecodeHeader(std::string_view bytes) {
  if (bytes.size() < kRecordHeaderSize) return std::nullopt;
  RecordHeader header;
  header.length = Load<uint32_t>(bytes, 0);
  header.crc = Load<uint32_t>(bytes, 4);
  header.sequence = Load<uint64_t>(bytes, 8);
  header.kind = static_cast<RecordKind>(bytes[16]);
  bool known =
      header.kind == RecordKind::kCheckpoint || header.kind == RecordKind::kBatch;
  if (!known || header.length > kMaxRecordBody) return std::nullopt;
  return header;
}

std::optional<Record> TakeRecord(std::string_view* bytes) {
  std::optional<RecordHeader> header = DecodeHeader(*bytes);
  if (!header || bytes->size() - kRecordHeaderSize < header->length)
    return std::nullopt;
  std::string_view whole = bytes->substr(0, kRecordHeaderSize + header->length);
  if (Crc32c(whole.substr(kChecked)) != header->crc) return std::nullopt;
  bytes->remove_prefix(whole.size());
  return Record{*header, whole.substr(kRecordHeaderSize)};
}

}  // namespace lull::relay
