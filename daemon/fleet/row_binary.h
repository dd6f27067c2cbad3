// Rows of ClickHouse from plain structs, and back: values in its format RowBinary
// (little-endian; a string is its length as a varint, then its bytes).
//
// A struct names its columns once, in order:
//   template <typename Visitor> static void Columns(Visitor&& column) {
//     column("rank", &RankRow::rank);
//   }
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lull::fleet {

static_assert(std::endian::native == std::endian::little);

// A date of UTC; days since 1970.
struct Day {
  uint16_t days = 0;
};

template <typename T>
void PutBytes(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void PutLength(uint64_t length, std::string* out) {
  for (; length >= 0x80; length >>= 7) {
    out->push_back(static_cast<char>(length | 0x80));
  }
  out->push_back(static_cast<char>(length));
}

template <typename T>
void Put(const T& value, std::string* out) {
  if constexpr (std::is_same_v<T, Day>) {
    PutBytes(value.days, out);
  } else if constexpr (std::is_same_v<T, std::string>) {
    PutLength(value.size(), out);
    out->append(value);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    PutLength(value.size(), out);
    for (const std::string& one : value) Put(one, out);
  } else if constexpr (std::is_same_v<T, std::optional<int32_t>>) {
    out->push_back(value ? '\0' : '\1');  // 1: there is none, and nothing follows
    if (value) PutBytes(*value, out);
  } else {
    PutBytes(value, out);
  }
}

template <typename Row>
void PutRow(const Row& row, std::string* out) {
  Row::Columns([&](const char*, auto member) { Put(row.*member, out); });
}

inline bool TakeLength(std::string_view* data, uint64_t* length) {
  *length = 0;
  for (int shift = 0;; shift += 7) {
    if (data->empty() || shift > 63) return false;
    const auto byte = static_cast<uint8_t>(data->front());
    data->remove_prefix(1);
    *length |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
}

// Of an array that is taken.
inline constexpr uint64_t kMostElements = 1000;

// Takes values off the front of `*data`. False: it ends within one; `*out` is as it
// was or partly filled in.
template <typename T>
bool Take(std::string_view* data, T* out) {
  if constexpr (std::is_same_v<T, std::string>) {
    uint64_t length = 0;
    if (!TakeLength(data, &length) || length > data->size()) return false;
    out->assign(data->data(), length);
    data->remove_prefix(length);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    uint64_t length = 0;
    if (!TakeLength(data, &length) || length > kMostElements) return false;
    out->clear();
    for (uint64_t i = 0; i < length; ++i) {
      if (!Take(data, &out->emplace_back())) return false;
    }
  } else {
    static_assert(std::is_integral_v<T>);
    if (data->size() < sizeof(T)) return false;
    data->copy(reinterpret_cast<char*>(out), sizeof(T));
    data->remove_prefix(sizeof(T));
  }
  return true;
}

}  // namespace lull::fleet
