#include "daemon/query/late_looks.h"

#include <algorithm>
#include <vector>

#include "daemon/base/status.h"

namespace lull::query {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void Widen(double late, v1::SampledShare* share) {
  if (share->high_percent() <= share->low_percent()) return;  // exact
  const double p = share->percent();
  share->set_low_percent(std::max(0.0, share->low_percent() - late * p));
  share->set_high_percent(std::min(100.0, share->high_percent() + late * (100 - p)));
}

}  // namespace

void WidenForLateLooks(double late, Message* message) {
  if (message->GetDescriptor() == v1::SampledShare::descriptor()) {
    return Widen(late, static_cast<v1::SampledShare*>(message));
  }
  const google::protobuf::Reflection* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      WidenForLateLooks(late, reflection->MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      WidenForLateLooks(late, reflection->MutableRepeatedMessage(message, field, i));
    }
  }
}

absl::Status WidenForLateLooks(const View& view, v1::ReportReply* reply) {
  // Those that have shares at all: a timeline has a hundred thousand other messages.
  std::vector<Message*> sampled;
  if (reply->has_hot()) sampled.push_back(reply->mutable_hot());
  if (reply->has_gaps()) sampled.push_back(reply->mutable_gaps());
  if (reply->has_data()) sampled.push_back(reply->mutable_data());
  if (reply->has_steps()) sampled.push_back(reply->mutable_steps());
  if (sampled.empty()) return absl::OkStatus();
  LULL_ASSIGN_OR_RETURN(auto rows,
                        view.reader->catalogue().All<storage::ProcessRow>(view.job.id));
  uint64_t taken = 0, late = 0;
  for (const storage::ProcessRow& row : rows) {
    taken += row.counters.host_samples().taken();
    late += row.counters.host_samples().late();
  }
  if (late == 0) return absl::OkStatus();
  const double part = static_cast<double>(late) / static_cast<double>(taken);
  for (Message* message : sampled) WidenForLateLooks(part, message);
  return absl::OkStatus();
}

}  // namespace lull::query
