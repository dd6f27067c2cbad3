// Columns of ClickHouse for the members of plain structs (row_binary.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "daemon/fleet/row_binary.h"

namespace lull::fleet {

template <typename T>
constexpr const char* TypeName() {
  if constexpr (std::is_same_v<T, Day>) {
    return "Date";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "String";
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return "Array(String)";
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return "UInt8";
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return "Int32";
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return "UInt32";
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return "UInt64";
  } else {
    static_assert(std::is_same_v<T, std::optional<int32_t>>);
    return "Nullable(Int32)";
  }
}

struct ColumnType {
  std::string name;
  std::string type;
  bool operator==(const ColumnType&) const = default;
};

template <typename Row>
std::vector<ColumnType> ColumnTypes() {
  std::vector<ColumnType> columns;
  Row::Columns([&]<typename T, typename Of>(const char* name, T Of::*) {
    columns.push_back({name, TypeName<T>()});
  });
  return columns;
}

}  // namespace lull::fleet
