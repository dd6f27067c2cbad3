// One event of a trace in the format of chrome://tracing, as far as anything of it is
// used: a handler for RapidJSON's SAX reader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lull::imports {

// Microseconds as they stand in the text, in ns, without the detour of a double.
// nullopt: no number, negative, or out of range.
std::optional<uint64_t> NsOfMicroseconds(std::string_view text);
// Whole numbers, also in quotes, and the number in "stream 7".
std::optional<int64_t> IntegerOf(std::string_view text);

struct ChromeEvent {
  std::string phase, category, name;
  std::string timestamp, duration;  // the numbers as they stand there
  std::optional<int64_t> pid, tid;
  // From the arguments:
  std::optional<int64_t> correlation, device, stream, context, bytes, graph;
  std::optional<int64_t> registers, shared;
  std::optional<int64_t> sequence, forward_thread;
  std::array<uint32_t, 3> grid = {};
  std::array<uint32_t, 3> block = {};
  std::string call_stack;
  std::optional<int64_t> address, allocated, reserved, device_type, device_id;

  void Clear();
};

// Named as RapidJSON wants it.
class ChromeEventHandler {
 public:
  // No event has so many levels.
  static constexpr int kDeepest = 32;

  explicit ChromeEventHandler(ChromeEvent& event) : event_(event) {}
  void Reset();

  bool Null() { return Value({}, false); }
  bool Bool(bool) { return Value({}, false); }
  bool Int(int) { return true; }  // numbers come as text
  bool Uint(unsigned) { return true; }
  bool Int64(int64_t) { return true; }
  bool Uint64(uint64_t) { return true; }
  bool Double(double) { return true; }
  bool RawNumber(const char* text, unsigned length, bool) {
    return Value({text, length}, true);
  }
  bool String(const char* text, unsigned length, bool) {
    return Value({text, length}, false);
  }
  bool StartObject();
  bool Key(const char* text, unsigned length, bool);
  bool EndObject(unsigned);
  bool StartArray();
  bool EndArray(unsigned);

 private:
  // What the value of a key is; nothing is set for "args".
  struct Field {
    std::string_view key;
    std::string ChromeEvent::*text = nullptr;
    std::optional<int64_t> ChromeEvent::*number = nullptr;
    std::array<uint32_t, 3> ChromeEvent::*extent = nullptr;
  };
  static const Field kFields[], kArguments[];

  bool Value(std::string_view text, bool number);

  ChromeEvent& event_;
  int depth_ = 0;
  bool in_arguments_ = false;
  const Field* field_ = nullptr;  // whose value comes next, if anybody wants it
  size_t element_ = 0;            // of an extent
};

}  // namespace lull::imports
