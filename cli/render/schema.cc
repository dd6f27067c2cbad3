#include "cli/render/schema.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "cli/render/schema_parts.h"

namespace lull {
namespace {

struct Verb {
  const char* name;
  Json (*schema)();
};

constexpr std::array kVerbs = {
    Verb{"report", schema::Report}, Verb{"gaps", schema::Gaps},
    Verb{"hot", schema::Hot},       Verb{"kernels", schema::Kernels},
    Verb{"ops", schema::Operators}, Verb{"steps", schema::Steps},
    Verb{"data", schema::Data},     Verb{"regions", schema::Regions},
    Verb{"syncs", schema::Syncs},   Verb{"waits", schema::Waits},
    Verb{"gc", schema::Gc},         Verb{"allocs", schema::Allocations},
    Verb{"memory", schema::Memory}, Verb{"jobs", schema::Jobs},
    Verb{"ps", schema::Ps},         Verb{"arm", schema::Arm},
    Verb{"disarm", schema::Arm},    Verb{"doctor", schema::Doctor}};

}  // namespace

std::vector<std::string> VerbsWithSchema() {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  return names;
}

Json AnswerSchema(absl::string_view verb) {
  for (const Verb& one : kVerbs) {
    if (one.name != verb) continue;
    return schema::Document(absl::StrCat("lull ", verb, " --json"), one.schema());
  }
  return nullptr;
}

}  // namespace lull
