#include "tests/cli/random_reply.h"

#include <array>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"

namespace lull::testing {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

uint64_t RandomMessages::Unsigned() {
  // Small ones are equal now and then, which tells answers something.
  constexpr std::array<uint64_t, 6> kOf = {0, 1, 2, 30, 1'000'000, 1ull << 40};
  return kOf[Below(kOf.size())];
}

std::string RandomMessages::Text() {
  constexpr std::array<const char*, 5> kOf = {"", "a", "(backward)", "loss.item",
                                              "\xff"};
  return kOf[Below(kOf.size())];
}

void RandomMessages::Set(Message* message, const FieldDescriptor& field, int deep) {
  const auto& reflection = *message->GetReflection();
  const bool list = field.is_repeated();
  auto put = [&](auto set, auto add, auto value) {
    list ? (reflection.*add)(message, &field, value)
         : (reflection.*set)(message, &field, value);
  };
  using R = google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return put(&R::SetUInt32, &R::AddUInt32, static_cast<uint32_t>(Unsigned()));
    case FieldDescriptor::CPPTYPE_UINT64:
      return put(&R::SetUInt64, &R::AddUInt64, Unsigned());
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&R::SetInt32, &R::AddInt32, static_cast<int32_t>(Below(4)) - 1);
    case FieldDescriptor::CPPTYPE_INT64:
      return put(&R::SetInt64, &R::AddInt64, static_cast<int64_t>(Below(9)) - 4);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put(&R::SetDouble, &R::AddDouble, static_cast<double>(Below(5)) / 2);
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(&R::SetBool, &R::AddBool, Below(2) == 1);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto& words = *field.enum_type();
      const size_t which = Below(static_cast<size_t>(words.value_count()) + 1);
      const int number = which == static_cast<size_t>(words.value_count())
                             ? 999
                             : words.value(static_cast<int>(which))->number();
      return put(&R::SetEnumValue, &R::AddEnumValue, number);
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return list ? reflection.AddString(message, &field, Text())
                  : reflection.SetString(message, &field, Text());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (deep == 0) return;
      return Fill(list ? reflection.AddMessage(message, &field)
                       : reflection.MutableMessage(message, &field),
                  deep - 1);
    default:
      return;
  }
}

void RandomMessages::Fill(Message* message, int deep) {
  const auto& fields = *message->GetDescriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const FieldDescriptor& field = *fields.field(i);
    size_t times = field.is_repeated() ? Below(3) : Below(2);
    while (times-- > 0) Set(message, field, deep);
  }
}

}  // namespace lull::testing
