// What the fuzz target of the collector runs on: the bytes of one message of a
// stream, through validation into the memory of a job and the store.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ingest.pb.h"

namespace lull::collector {

// Parses, validates, applies, writes and rolls back. Returns true when the message
// was taken for a good one.
bool FuzzIngest(std::string_view input);

// Well-formed messages to start from.
std::vector<lull::v1::IngestRequest> IngestSeeds();

// Changes one field somewhere in `message`: a number to an interesting one, a list to
// a longer or shorter one, a string to another. What comes out always parses, so that
// it reaches what lies behind the parser.
void MutateMessage(google::protobuf::Message& message, std::mt19937_64& random);

}  // namespace lull::collector
