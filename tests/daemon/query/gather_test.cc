#include "daemon/query/gather.h"

#include <gtest/gtest.h>

#include "events.pb.h"
#include "google/protobuf/descriptor.h"
#include "query.pb.h"

namespace lull::query {
namespace {

using google::protobuf::FieldDescriptor;

v1::Losses Gathered(const std::vector<v1::ProcessCounters>& processes) {
  v1::Losses losses;
  for (const auto& counters : processes) Gather(counters, &losses);
  return losses;
}

TEST(Gather, AddsTakesTheMostAndCounts) {
  v1::ProcessCounters one, other;
  one.set_reentered(3);
  other.set_reentered(4);
  one.set_modules_unread(9);
  other.set_modules_unread(2);
  one.set_no_memory(true);
  other.set_no_memory(true);
  other.set_unread(true);
  v1::Losses losses = Gathered({one, other});
  EXPECT_EQ(losses.reentered(), 7u);
  EXPECT_EQ(losses.modules_unread(), 9u);
  EXPECT_EQ(losses.processes_without_memory(), 2u);
  EXPECT_EQ(losses.processes_unread(), 1u);
  EXPECT_EQ(losses.processes_with_seccomp_filter(), 0u);
  EXPECT_EQ(losses.events_lost(), 0u);
}

// Every number 7, every flag set.
template <typename Counters>
Counters Sevens() {
  Counters counters;
  const auto* reflection = counters.GetReflection();
  for (int i = 0; i < counters.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = counters.GetDescriptor()->field(i);
    if (field->is_repeated()) continue;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection->SetBool(&counters, field, true);
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        reflection->SetUInt32(&counters, field, 7);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection->SetUInt64(&counters, field, 7);
        break;
      default:
        break;
    }
  }
  return counters;
}

// A name that is misspelt in query.proto, or of a field of another kind, would gather
// nothing without a word.
TEST(Gather, EveryOptionOfLossesNamesACounter) {
  v1::Losses losses = Gathered({Sevens<v1::ProcessCounters>()});
  Gather(Sevens<v1::RingCounters>(), &losses);
  int with_option = 0;
  for (int i = 0; i < losses.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = losses.GetDescriptor()->field(i);
    const auto& options = field->options();
    if (!options.HasExtension(v1::sum_of) && !options.HasExtension(v1::most_of) &&
        !options.HasExtension(v1::processes_with)) {
      continue;
    }
    ++with_option;
    uint64_t value = field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
                         ? losses.GetReflection()->GetUInt32(losses, field)
                         : losses.GetReflection()->GetUInt64(losses, field);
    EXPECT_EQ(value, options.HasExtension(v1::processes_with) ? 1u : 7u)
        << field->name();
  }
  EXPECT_GE(with_option, 11);
}

}  // namespace
}  // namespace lull::query
