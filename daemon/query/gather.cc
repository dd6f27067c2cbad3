#include "daemon/query/gather.h"

#include <algorithm>
#include <string>

#include "google/protobuf/descriptor.h"
#include "query.pb.h"

namespace lull::query {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FieldOptions;
using google::protobuf::Message;

enum class How { kNot, kSum, kMost, kProcesses };

struct Rule {
  How how = How::kNot;
  std::string field;
};

Rule RuleOf(const FieldDescriptor& field) {
  const FieldOptions& options = field.options();
  if (options.HasExtension(v1::sum_of)) {
    return {How::kSum, options.GetExtension(v1::sum_of)};
  }
  if (options.HasExtension(v1::most_of)) {
    return {How::kMost, options.GetExtension(v1::most_of)};
  }
  if (options.HasExtension(v1::processes_with)) {
    return {How::kProcesses, options.GetExtension(v1::processes_with)};
  }
  return {};
}

bool IsNumber(const FieldDescriptor& field) {
  return !field.is_repeated() && (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
                                  field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64);
}
bool IsFlag(const FieldDescriptor& field) {
  return !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL;
}

uint64_t Number(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32
             ? reflection.GetUInt32(message, &field)
             : reflection.GetUInt64(message, &field);
}

void SetNumber(const FieldDescriptor& field, uint64_t value, Message* message) {
  const auto& reflection = *message->GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
    uint64_t most = UINT32_MAX;
    reflection.SetUInt32(message, &field, static_cast<uint32_t>(std::min(value, most)));
  } else {
    reflection.SetUInt64(message, &field, value);
  }
}

// The field that `rule` means, or nullptr: there is none that it fits.
const FieldDescriptor* Source(const Rule& rule, const FieldDescriptor& into,
                              const Descriptor& counters) {
  const FieldDescriptor* from = counters.FindFieldByName(rule.field);
  if (from == nullptr || !IsNumber(into)) return nullptr;
  bool fits = rule.how == How::kProcesses ? IsFlag(*from) : IsNumber(*from);
  return fits ? from : nullptr;
}

}  // namespace

void Gather(const Message& counters, Message* out) {
  const Descriptor& into = *out->GetDescriptor();
  for (int i = 0; i < into.field_count(); ++i) {
    const FieldDescriptor& field = *into.field(i);
    Rule rule = RuleOf(field);
    if (rule.how == How::kNot) continue;
    const FieldDescriptor* from = Source(rule, field, *counters.GetDescriptor());
    if (from == nullptr) continue;
    uint64_t value = Number(*out, field);
    switch (rule.how) {
      case How::kSum:
        value += Number(counters, *from);
        break;
      case How::kMost:
        value = std::max(value, Number(counters, *from));
        break;
      default:
        value += counters.GetReflection()->GetBool(counters, from) ? 1 : 0;
    }
    SetNumber(field, value, out);
  }
}

}  // namespace lull::query
