#include "daemon/import/chrome_event.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

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
  if (text.starts_with(kStream)) {
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

constexpr ChromeEventHandler::Field ChromeEventHandler::kFields[] = {
    {.key = "ph", .text = &ChromeEvent::phase},
    {.key = "cat", .text = &ChromeEvent::category},
    {.key = "name", .text = &ChromeEvent::name},
    {.key = "ts", .text = &ChromeEvent::timestamp},
    {.key = "dur", .text = &ChromeEvent::duration},
    {.key = "pid", .number = &ChromeEvent::pid},
    {.key = "tid", .number = &ChromeEvent::tid},
    {.key = "args"},
};

constexpr ChromeEventHandler::Field ChromeEventHandler::kArguments[] = {
    {.key = "correlation", .number = &ChromeEvent::correlation},
    {.key = "device", .number = &ChromeEvent::device},
    {.key = "stream", .number = &ChromeEvent::stream},
    {.key = "context", .number = &ChromeEvent::context},
    {.key = "bytes", .number = &ChromeEvent::bytes},
    {.key = "graph id", .number = &ChromeEvent::graph},
    {.key = "registers per thread", .number = &ChromeEvent::registers},
    {.key = "shared memory", .number = &ChromeEvent::shared},
    {.key = "grid", .extent = &ChromeEvent::grid},
    {.key = "block", .extent = &ChromeEvent::block},
    {.key = "Call stack", .text = &ChromeEvent::call_stack},
    {.key = "Sequence number", .number = &ChromeEvent::sequence},
    {.key = "Fwd thread id", .number = &ChromeEvent::forward_thread},
    {.key = "Bytes", .number = &ChromeEvent::bytes},
    {.key = "Addr", .number = &ChromeEvent::address},
    {.key = "Total Allocated", .number = &ChromeEvent::allocated},
    {.key = "Total Reserved", .number = &ChromeEvent::reserved},
    {.key = "Device Type", .number = &ChromeEvent::device_type},
    {.key = "Device Id", .number = &ChromeEvent::device_id},
    {.key = "fromDevice", .number = &ChromeEvent::device},  // of copies between two
};

void ChromeEventHandler::Reset() {
  event_.Clear();
  depth_ = 0;
  in_arguments_ = false;
  field_ = nullptr;
}

bool ChromeEventHandler::StartObject() {
  if (depth_ == 1) in_arguments_ = field_ != nullptr && field_->key == "args";
  if (depth_ > 0) field_ = nullptr;
  return ++depth_ <= kDeepest;
}

bool ChromeEventHandler::EndObject(unsigned) {
  if (--depth_ == 1) in_arguments_ = false;
  field_ = nullptr;
  return true;
}

bool ChromeEventHandler::StartArray() {
  element_ = 0;
  if (field_ != nullptr && field_->extent == nullptr) field_ = nullptr;
  return ++depth_ <= kDeepest;
}

bool ChromeEventHandler::EndArray(unsigned) {
  --depth_;
  field_ = nullptr;
  return true;
}

bool ChromeEventHandler::Key(const char* text, unsigned length, bool) {
  std::span<const Field> fields;
  if (depth_ == 1) fields = kFields;
  if (depth_ == 2 && in_arguments_) fields = kArguments;
  const std::string_view key(text, length);
  // Most are of another length or begin otherwise: that is looked at without a call.
  auto found = std::find_if(fields.begin(), fields.end(), [key](const Field& field) {
    return field.key.size() == key.size() && field.key.front() == key.front() &&
           field.key == key;
  });
  field_ = found == fields.end() ? nullptr : &*found;
  return true;
}

bool ChromeEventHandler::Value(std::string_view text, bool number) {
  if (field_ == nullptr) return true;
  if (field_->extent != nullptr) {
    auto& extent = event_.*field_->extent;
    if (depth_ == 3 && number && element_ < extent.size()) {
      extent[element_++] = Extent(text);
    }
    return true;  // more may follow
  }
  if (field_->text != nullptr) event_.*field_->text = text;
  if (field_->number != nullptr) event_.*field_->number = IntegerOf(text);
  field_ = nullptr;
  return true;
}

}  // namespace lull::imports
