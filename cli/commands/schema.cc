// `lull schema`: the JSON Schemas of what verbs print with --json.
#include "cli/render/schema.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/commands/verbs.h"
#include "cli/commands/wrong_command_line.h"

namespace lull {
namespace {

int PrintSchema(const std::string& verb) {
  Json schema = AnswerSchema(verb);
  if (!schema.is_null()) {
    Print(JsonText(schema));
    return 0;
  }
  const std::string meant = DidYouMean(verb, VerbsWithSchema());
  return Fail(
      "schema",
      absl::StrCat("no verb '", verb, "' prints JSON",
                   meant.empty() ? "; `lull schema` lists those that do" : meant),
      kExitUsage);
}

}  // namespace

void AddSchema(CLI::App& app, int* exit_code) {
  auto verb = std::make_shared<std::string>();
  CLI::App* schema = app.add_subcommand(
      "schema",
      "The JSON Schema of a verb's answer (--json); without VERB: which have one");
  schema->footer(
      "Schemas are of draft 2020-12. Objects are closed: they have no other keys. What "
      "may "
      "be\nunknown is null, and never left out.\n\n"
      "Examples:\n  lull schema\n  lull schema syncs > syncs.schema.json");
  schema->add_option("VERB", *verb, "a verb that prints JSON")->type_name("");
  schema->callback([verb, schema, exit_code] {
    if (schema->count("VERB") == 0) {
      Print(absl::StrCat(absl::StrJoin(VerbsWithSchema(), "\n"), "\n"));
    } else {
      *exit_code = PrintSchema(*verb);
    }
  });
}

}  // namespace lull
