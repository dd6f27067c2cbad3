#include "daemon/import/chrome_event.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"

namespace lull::imports {
namespace {

constexpr uint64_t kLatestNs = uint64_t{1} << 62;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

uint32_t Extent(std::string_view text) {
  const auto value = IntegerOf(text);
  return value && *value > 0 && *value <= UINT32_MAX ? static_cast<uint32_t>(*value)
                                                     : 0;
}

}  // namespace

std::optional<uint64_t> NsOfMicroseconds(std::string_view text) {
  uint64_t whole = 0;
  size_t at = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at) {
    whole = whole * 10 + static_cast<uint64_t>(text[at] - '0');
    if (whole > kLatestNs / 1000) return std::nullopt;
  }
  if (at == 0) return std::nullopt;
  uint64_t ns = whole * 1000;
  if (at == text.size()) return ns;
  if (text[at] == '.') {
    uint64_t scale = 100;
    for (++at; at < text.size() && IsDigit(text[at]); ++at, scale /= 10) {
      ns += static_cast<uint64_t>(text[at] - '0') * scale;
    }
  }
  if (at == text.size()) return ns;
  double value = 0;  // 1.6e15
  if (!absl::SimpleAtod({text.data(), text.size()}, &value)) return std::nullopt;
  value *= 1000;
  if (!(value >= 0) || value > static_cast<double>(kLatestNs)) return std::nullopt;
  return static_cast<uint64_t>(std::llround(value));
}

std::optional<int64_t> IntegerOf(std::string_view text) {
  int64_t value = 0;
  if (absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &value)) {
    return value;
  }
  constexpr std::string_view kStream = "stream ";
  if (text.substr(0, kStream.size()) == kStream) {
    return IntegerOf(text.substr(kStream.size()));
  }
  uint64_t large = 0;  // the address of a stream
  if (absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &large)) {
    return static_cast<int64_t>(large);
  }
  double real = 0;
  if (absl::SimpleAtod(absl::string_view(text.data(), text.size()), &real) &&
      std::abs(real) < 9e15) {
    return static_cast<int64_t>(real);
  }
  return std::nullopt;
}

// The strings keep their memory: there are millions of events.
void ChromeEvent::Clear() {
  for (std::string* text :
       {&phase, &category, &name, &timestamp, &duration, &call_stack}) {
    text->clear();
  }
  for (std::optional<int64_t>* number :
       {&pid, &tid, &correlation, &device, &stream, &context, &bytes, &graph,
        &registers, &shared, &sequence, &forward_thread, &address, &allocated,
        &reserved, &device_type, &device_id}) {
    number->reset();
  }
  grid = block = {};
}

ChromeEventHandler::Field ChromeEventHandler::FieldOf(std::string_view key) {
  constexpr std::pair<std::string_view, Field> kFields[] = {
      {"ph", Field::kPhase},     {"cat", Field::kCategory},  {"name", Field::kName},
      {"ts", Field::kTimestamp}, {"dur", Field::kDuration},  {"pid", Field::kPid},
      {"tid", Field::kTid},      {"args", Field::kArguments}};
  for (const auto& [name, field] : kFields) {
    if (name == key) return field;
  }
  return Field::kNone;
}

ChromeEventHandler::Field ChromeEventHandler::ArgumentOf(std::string_view key) {
  constexpr std::pair<std::string_view, Field> kArguments[] = {
      {"correlation", Field::kCorrelation},
      {"device", Field::kDevice},
      {"stream", Field::kStream},
      {"context", Field::kContext},
      {"bytes", Field::kBytes},
      {"graph id", Field::kGraph},
      {"registers per thread", Field::kRegisters},
      {"shared memory", Field::kShared},
      {"grid", Field::kGrid},
      {"block", Field::kBlock},
      {"Call stack", Field::kCallStack},
      {"Sequence number", Field::kSequence},
      {"Fwd thread id", Field::kForwardThread},
      {"Bytes", Field::kBytes},
      {"Addr", Field::kAddress},
      {"Total Allocated", Field::kAllocated},
      {"Total Reserved", Field::kReserved},
      {"Device Type", Field::kDeviceType},
      {"Device Id", Field::kDeviceId},
      {"fromDevice", Field::kDevice},  // of copies between two
  };
  for (const auto& [name, field] : kArguments) {
    if (name == key) return field;
  }
  return Field::kNone;
}

void ChromeEventHandler::Reset() {
  event_.Clear();
  depth_ = 0;
  in_arguments_ = false;
  field_ = Field::kNone;
}

bool ChromeEventHandler::StartObject() {
  if (depth_ == 1) in_arguments_ = field_ == Field::kArguments;
  if (depth_ > 0) field_ = Field::kNone;
  return ++depth_ <= kDeepest;
}

bool ChromeEventHandler::EndObject(unsigned) {
  if (--depth_ == 1) in_arguments_ = false;
  field_ = Field::kNone;
  return true;
}

bool ChromeEventHandler::StartArray() {
  element_ = 0;
  if (field_ != Field::kGrid && field_ != Field::kBlock) field_ = Field::kNone;
  return ++depth_ <= kDeepest;
}

bool ChromeEventHandler::EndArray(unsigned) {
  --depth_;
  field_ = Field::kNone;
  return true;
}

bool ChromeEventHandler::Key(const char* text, unsigned length, bool) {
  const std::string_view key(text, length);
  field_ = depth_ == 1                    ? FieldOf(key)
           : depth_ == 2 && in_arguments_ ? ArgumentOf(key)
                                          : Field::kNone;
  return true;
}

bool ChromeEventHandler::Value(std::string_view text, bool number) {
  switch (field_) {
    case Field::kNone:
    case Field::kArguments:
      return true;
    case Field::kPhase:
      event_.phase = text;
      break;
    case Field::kCategory:
      event_.category = text;
      break;
    case Field::kName:
      event_.name = text;
      break;
    case Field::kTimestamp:
      event_.timestamp = text;
      break;
    case Field::kDuration:
      event_.duration = text;
      break;
    case Field::kPid:
      event_.pid = IntegerOf(text);
      break;
    case Field::kTid:
      event_.tid = IntegerOf(text);
      break;
    case Field::kCorrelation:
      event_.correlation = IntegerOf(text);
      break;
    case Field::kDevice:
      event_.device = IntegerOf(text);
      break;
    case Field::kStream:
      event_.stream = IntegerOf(text);
      break;
    case Field::kContext:
      event_.context = IntegerOf(text);
      break;
    case Field::kBytes:
      event_.bytes = IntegerOf(text);
      break;
    case Field::kGraph:
      event_.graph = IntegerOf(text);
      break;
    case Field::kRegisters:
      event_.registers = IntegerOf(text);
      break;
    case Field::kShared:
      event_.shared = IntegerOf(text);
      break;
    case Field::kGrid:
    case Field::kBlock: {
      auto& extent = field_ == Field::kGrid ? event_.grid : event_.block;
      if (depth_ == 3 && number && element_ < extent.size()) {
        extent[element_++] = Extent(text);
      }
      return true;  // more may follow
    }
    case Field::kSequence:
      event_.sequence = IntegerOf(text);
      break;
    case Field::kForwardThread:
      event_.forward_thread = IntegerOf(text);
      break;
    case Field::kCallStack:
      event_.call_stack = text;
      break;
    case Field::kAddress:
      event_.address = IntegerOf(text);
      break;
    case Field::kAllocated:
      event_.allocated = IntegerOf(text);
      break;
    case Field::kReserved:
      event_.reserved = IntegerOf(text);
      break;
    case Field::kDeviceType:
      event_.device_type = IntegerOf(text);
      break;
    case Field::kDeviceId:
      event_.device_id = IntegerOf(text);
      break;
  }
  field_ = Field::kNone;
  return true;
}

}  // namespace lull::imports
