#include "daemon/import/translate.h"

namespace lull::imports {

std::vector<std::string> RulesNotApplied(const std::map<std::string, bool>& applied) {
  auto missing = [&applied](const char* rule) {
    auto found = applied.find(rule);
    return found == applied.end() || !found->second;
  };
  std::vector<std::string> rules;
  // What no trace of torch.profiler tells.
  rules.emplace_back("waits for a processor (run_queue) are not in this format");
  rules.emplace_back("waits for the GIL (gil_wait) are not in this format");
  if (missing("gc")) {
    rules.emplace_back("pauses of Python's collector (gc) are not in this trace");
  }
  if (missing("data")) {
    rules.emplace_back(
        "no DataLoader is named in this trace, so that nothing is told as data");
  }
  if (missing("host_wait")) {
    rules.emplace_back(
        "no wait of a thread (host_wait) is in this trace; frames of Python would tell "
        "some");
  }
  rules.emplace_back(
      "synchronizations that are not in the trace (calls of the driver, and those "
      "before it began) cannot be told from code");
  return rules;
}

}  // namespace lull::imports
