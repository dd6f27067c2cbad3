#include "daemon/query/names.h"

#include <utility>

namespace lull::query {

Names::Names(storage::StoreReader& reader, int64_t job) : reader_(reader), job_(job) {
  auto apis = reader_.Apis(job_);
  status_ = apis.status();
  if (!apis.ok()) return;
  for (storage::ApiRow& api : *apis) apis_[api.id] = std::move(api.name);
}

const std::string& Names::Api(uint32_t id) { return apis_[id]; }

void Names::FillSite(uint32_t id, lull::v1::Site* site) {
  if (id == 0) return;
  auto [it, fresh] = sites_.try_emplace(id);
  if (fresh) {
    auto row = reader_.Site(job_, id);
    if (row.ok()) {
      it->second = *std::move(row);
    } else {
      status_.Update(row.status());
    }
  }
  site->set_file(it->second.file);
  site->set_line(it->second.line);
  site->set_function(it->second.function);
}

void Names::FillStack(uint32_t id,
                      google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames) {
  if (id == 0) return;
  auto [it, fresh] = stacks_.try_emplace(id);
  if (fresh) {
    auto stack = reader_.StackFrames(job_, id);
    if (stack.ok()) {
      it->second = *std::move(stack);
    } else {
      status_.Update(stack.status());
    }
  }
  for (const aggregate::Frame& frame : it->second) {
    lull::v1::Frame* out = frames->Add();
    out->set_function(frame.function);
    out->set_file(frame.file);
    out->set_line(frame.line);
    out->set_module(frame.module);
  }
}

}  // namespace lull::query
