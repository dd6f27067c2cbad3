// How the fields of a row lie in the columns of a table: numbers, flags and enums as
// integers, text as text; messages and lists as bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/storage/database.h"
#include "daemon/storage/varint.h"
#include "google/protobuf/message_lite.h"

namespace lull::storage {

// SQLite's integers are signed; what is larger counts as the end of time.
inline int64_t Clamp(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

using Numbers = std::vector<uint32_t>;
using Amounts = std::vector<std::pair<uint32_t, int64_t>>;

template <typename T>
concept Message = std::is_base_of_v<google::protobuf::MessageLite, T>;

template <typename T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <Number T>
int64_t ToColumn(T field) {
  return static_cast<int64_t>(field);
}
inline std::string_view ToColumn(const std::string& field) { return field; }
OwnedBlob ToColumn(const Message auto& field) { return {field.SerializeAsString()}; }
inline OwnedBlob ToColumn(const Numbers& field) {
  OwnedBlob blob;
  for (uint32_t number : field) PutVarint(&blob.bytes, number);
  return blob;
}
inline OwnedBlob ToColumn(const Amounts& field) {
  OwnedBlob blob;
  for (const auto& [number, amount] : field) {
    PutVarint(&blob.bytes, number);
    PutVarint(&blob.bytes, ZigZag(amount));
  }
  return blob;
}

// False for bytes that ToColumn did not make.
template <Number T>
bool FromColumn(const Row& row, int column, T* field) {
  *field = static_cast<T>(row.Int(column));
  return true;
}
inline bool FromColumn(const Row& row, int column, std::string* field) {
  *field = row.Text(column);
  return true;
}
bool FromColumn(const Row& row, int column, Message auto* field) {
  std::string_view bytes = row.Bytes(column);
  return field->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}
inline bool FromColumn(const Row& row, int column, Numbers* field) {
  std::string_view bytes = row.Bytes(column);
  for (uint64_t number = 0; !bytes.empty();) {
    if (!TakeVarint(&bytes, &number)) return false;
    field->push_back(static_cast<uint32_t>(number));
  }
  return true;
}
inline bool FromColumn(const Row& row, int column, Amounts* field) {
  std::string_view bytes = row.Bytes(column);
  for (uint64_t number = 0, amount = 0; !bytes.empty();) {
    if (!TakeVarint(&bytes, &number) || !TakeVarint(&bytes, &amount)) return false;
    field->emplace_back(static_cast<uint32_t>(number), UnZigZag(amount));
  }
  return true;
}

// `fields`: a tuple of references, as many as the row has columns.
template <typename... Fields>
bool FromColumns(const Row& row, std::tuple<Fields&...> fields) {
  int column = 0;
  return std::apply(
      [&](auto&... field) { return (FromColumn(row, column++, &field) && ...); },
      fields);
}

}  // namespace lull::storage
