// Counters of processes in the fields of an answer that name them, by the options that
// proto/query.proto declares: sum_of, most_of, processes_with.
#pragma once

#include "google/protobuf/message.h"

namespace lull::query {

// Adds what the fields of `out` with such an option say of `counters`. An option
// that names no field, or one of another kind, gathers nothing.
void Gather(const google::protobuf::Message& counters, google::protobuf::Message* out);

}  // namespace lull::query
