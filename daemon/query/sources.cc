#include "daemon/query/sources.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/status.h"
#include "google/protobuf/message.h"

namespace lull::query {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Lines = std::set<std::pair<std::string, uint32_t>>;  // file, line

// Of all sites in a message, wherever they stand, but for those of a reply's details.
void Collect(const Message& message, Lines* lines) {
  if (message.GetDescriptor() == v1::Site::descriptor()) {
    const auto& site = static_cast<const v1::Site&>(message);
    if (site.line() > 0) lines->emplace(site.file(), site.line());
  }
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const auto* type = field->message_type();
    if (type == nullptr || type == v1::ReportReply::descriptor() ||
        type == v1::Frame::descriptor()) {
      continue;
    }
    if (!field->is_repeated()) {
      Collect(reflection.GetMessage(message, field), lines);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      Collect(reflection.GetRepeatedMessage(message, field, i), lines);
    }
  }
}

void Fill(const std::vector<storage::SourceRow>& known, v1::ReportReply* reply) {
  Lines lines;
  Collect(*reply, &lines);
  size_t bytes = 0;
  for (const storage::SourceRow& row : known) {
    if (!lines.contains(std::make_pair(row.def.file(), row.def.line()))) continue;
    bytes += row.def.ByteSizeLong();
    if (bytes > kMostSourceBytes) return;
    *reply->add_sources() = row.def;
  }
}

}  // namespace

absl::Status FillSources(const View& view, v1::ReportReply* reply) {
  if (!view.request.with_sources()) return absl::OkStatus();
  LULL_ASSIGN_OR_RETURN(auto known,
                        view.reader->catalogue().All<storage::SourceRow>(view.job.id));
  if (known.empty()) return absl::OkStatus();
  Fill(known, reply);
  for (v1::ReportReply& detail : *reply->mutable_details()) Fill(known, &detail);
  return absl::OkStatus();
}

}  // namespace lull::query
