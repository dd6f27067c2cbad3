// `lull doctor`: what of this machine keeps lull from working.
#include "cli/render/doctor.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/verbs.h"
#include "cli/doctor/check.h"

namespace lull {
namespace {

int Run(bool json) {
  std::vector<Check> checks;
  for (auto* part :
       {CheckSystem, CheckPlaces, CheckParts, CheckSurroundings, CheckGpu}) {
    std::vector<Check> more = part();
    checks.insert(checks.end(), more.begin(), more.end());
  }
  PrintAnswer(json, json ? JsonText(DoctorJson(checks)) : DoctorText(checks));
  bool failed = std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.status == Check::Status::kError;
  });
  return failed ? kExitFailed : 0;
}

}  // namespace

void AddDoctor(CLI::App& app, int* exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand(
      "doctor", "What of this machine keeps lull from working, and what to do");
  verb->footer(
      "Exit code 1 when a check ends in an error.\n\nExample:\n  lull doctor --json");
  verb->add_flag("--json", *json, "print JSON instead of a table");
  AddTerminalOptions(verb, /*answers=*/true);
  verb->callback([json, exit_code] { *exit_code = Run(*json); });
}

}  // namespace lull
