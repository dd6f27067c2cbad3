// What `lull arm` and `lull disarm` print, and what reports say about a job that did
// not record all the time.
#pragma once

#include <string>

#include "cli/render/json.h"
#include "control.pb.h"
#include "query.pb.h"

namespace lull {

// "armed: job 3f2a1c20 "resnet", 2 processes, for 60.0 s"
std::string ArmedText(const v1::ArmReply& reply);
Json ArmedJson(const v1::ArmReply& reply);

// "recorded 60.0 s of 3602.1 s (2 stretches)"; "" if all of it was recorded.
std::string RecordedText(const v1::Job& job);

}  // namespace lull
