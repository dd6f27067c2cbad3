#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/base/environment.h"
#include "cli/doctor/check.h"
#include "cli/doctor/command.h"
#include "cli/doctor/interpreters.h"
#include "daemon/attach/examine/python_versions.h"

namespace lull {
namespace {

constexpr absl::Duration kInterpreter = absl::Seconds(20);

// One line: implementation, version, free-threaded or not, version of PyTorch or
// "-". Does not import torch, which can take seconds.
constexpr char kProbe[] =
    "import sys, sysconfig\n"
    "try:\n"
    "    from importlib.metadata import version\n"
    "    torch = version('torch')\n"
    "except Exception:\n"
    "    torch = '-'\n"
    "print(sys.implementation.name, '%d.%d' % sys.version_info[:2],\n"
    "      int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), torch)\n";

// Nothing for a program that cannot be run: version managers put a stand-in into
// PATH for every version that they know, installed or not.
std::optional<Check> Interpreter(const std::string& program) {
  Check check{"python", Check::Status::kOk, program};
  auto ran =
      RunCommand({program, "-c", kProbe}, EnvironmentWithoutShim(), kInterpreter);
  std::vector<std::string> words = absl::StrSplit(
      ran.ok() ? ran->output : "", absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (!ran.ok() || ran->exit_status != 0 || words.size() != 4) return std::nullopt;
  int major = 0;
  int minor = 0;
  sscanf(words[1].c_str(), "%d.%d", &major, &minor);
  absl::StrAppend(
      &check.detail, ": ", words[0], " ", words[1],
      words[3] == "-" ? ", no PyTorch" : absl::StrCat(", PyTorch ", words[3]));
  if (words[0] != "cpython" || major != 3 || minor < attach::kOldestPythonMinor ||
      minor > attach::kNewestPythonMinor || words[2] == "1") {
    check.status = Check::Status::kWarning;
    check.advice = absl::StrCat("jobs run, but without Python stacks; use ",
                                attach::kReadablePythons);
  }
  return check;
}

}  // namespace

std::vector<std::string> InterpreterNames() {
  std::vector<std::string> names = {"python3", "python"};
  for (int minor = attach::kOldestPythonMinor; minor <= attach::kNewestPythonMinor + 1;
       ++minor) {
    names.push_back(absl::StrCat("python3.", minor));
  }
  return names;
}

std::vector<Check> CheckSurroundings() {
  std::vector<Check> checks;
  for (const std::string& program : FindPrograms(InterpreterNames())) {
    if (auto check = Interpreter(program)) checks.push_back(*std::move(check));
  }
  if (checks.empty()) {
    checks.push_back({"python", Check::Status::kWarning, "no Python in PATH that runs",
                      "nothing to do for jobs without Python"});
  }
  return checks;
}

}  // namespace lull
