#include "cli/render/schema.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "cli/render/fleet.h"
#include "cli/render/schema_parts.h"

namespace lull {
namespace {

constexpr VerbSchema kOtherVerbs[] = {
    {"diff", schema::Diff},   {"check", schema::Check},   {"jobs", schema::Jobs},
    {"fleet", schema::Fleet}, {"ps", schema::Ps},         {"arm", schema::Arm},
    {"disarm", schema::Arm},  {"doctor", schema::Doctor}, {"tag", schema::Marks},
    {"untag", schema::Marks}, {"pin", schema::Marks},     {"unpin", schema::Marks}};

std::vector<VerbSchema> AllVerbs() {
  std::vector<VerbSchema> all(std::begin(kVerbSchemas), std::end(kVerbSchemas));
  all.insert(all.end(), std::begin(kOtherVerbs), std::end(kOtherVerbs));
  return all;
}

}  // namespace

std::vector<std::string> VerbsWithSchema() {
  std::vector<std::string> names;
  for (const VerbSchema& verb : AllVerbs()) names.emplace_back(verb.verb);
  return names;
}

Json AnswerSchema(absl::string_view verb) {
  for (const VerbSchema& one : AllVerbs()) {
    if (one.verb != verb) continue;
    return schema::Document(absl::StrCat("lull ", verb, " --json"), one.schema());
  }
  return nullptr;
}

}  // namespace lull
