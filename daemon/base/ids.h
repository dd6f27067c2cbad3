// Numbers that would be mixed up, as types of their own: a stream in the place of a
// device does not compile. DeviceId{0}; Number(id) where it leaves our hands: a proto,
// a column, a line of text. They hash, compare and print as what they are.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace lull {

// CUPTI's, of a call and of the operation that it submitted. 0: none.
enum class CorrelationId : uint32_t {};
// The kernel's, of a thread. 0: not known.
enum class ThreadId : uint32_t {};
// The driver's, of a GPU of a process: its ordinal.
enum class DeviceId : uint32_t {};
// CUPTI's, of a context of a process and of a stream in it.
enum class ContextId : uint32_t {};
enum class StreamId : uint32_t {};

template <typename T>
concept Id = std::same_as<T, CorrelationId> || std::same_as<T, ThreadId> ||
    std::same_as<T, DeviceId> || std::same_as<T, ContextId> ||
    std::same_as<T, StreamId>;

constexpr auto Number(Id auto id) {
  return static_cast<std::underlying_type_t<decltype(id)>>(id);
}

// For a failing test, and for a log.
template <typename Stream>
Stream& operator<<(Stream& out, Id auto id) {
  out << Number(id);
  return out;
}

}  // namespace lull
