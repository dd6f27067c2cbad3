// Fills the fields of an answer that name counters of processes, by the options that
// proto/query.proto declares: sum_of, most_of, processes_with.
#pragma once

#include "google/protobuf/message.h"

namespace lull::query {

// Adds `counters` to the fields of `out` that have such an option. An option that names
// no field, or one of another kind, gathers nothing.
void Gather(const google::protobuf::Message& counters, google::protobuf::Message* out);

}  // namespace lull::query
