// The names of an event's arguments, by its type: arg0..arg2 as preload/abi/event.h and
// proto/events.proto tell them, and nobody else. A view costs nothing and checks
// nothing: whoever makes one knows the type. It is of any struct that has the
// arguments: what the relay reads, what the collector stores, what a test makes up.
//
//   bytes += CopyCallView{event}.bytes();
//   MemoryView{event}.set_address(0x1000).set_bytes(64);
#pragma once

#include <type_traits>

// A reader and a writer of `arg` by the name that it has there.
#define LULL_ARGUMENT(Type, name, arg)                                 \
  Type name() const { return static_cast<Type>(event.arg); }           \
  const auto& set_##name(Type value) const {                           \
    event.arg = static_cast<std::decay_t<decltype(event.arg)>>(value); \
    return *this;                                                      \
  }
// The same of a word: any enum of that vocabulary is put in, its number comes out.
#define LULL_WORD(name, arg)                                           \
  auto name() const { return event.arg; }                              \
  const auto& set_##name(auto value) const {                           \
    event.arg = static_cast<std::decay_t<decltype(event.arg)>>(value); \
    return *this;                                                      \
  }
#define LULL_EVENT_VIEW(Name)  \
  template <typename Event>    \
  struct Name;                 \
  template <typename Event>    \
  Name(Event&) -> Name<Event>; \
  template <typename Event>    \
  struct Name
