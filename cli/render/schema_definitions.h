// The parts of answers that have a name in their JSON Schemas.
#pragma once

#include <string>

#include "cli/render/json.h"

namespace lull::schema {

// As schema::Ref() names it.
Json Definition(const std::string& name);

Json Causes();    // keys of GapCause
Json Roles();     // of threads
Json Phases();    // what of a job is shown
Json Imported();  // of a job that was read from other profilers' files

// ReportJson() and the answers of the verbs, as AnswerJson() wraps them.
Json Answer(Json body);

}  // namespace lull::schema
