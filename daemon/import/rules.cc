#include "daemon/base/import_words.h"
#include "daemon/import/translate.h"

namespace lull::imports {

std::vector<std::string> RulesNotApplied(const std::map<std::string, bool>& applied) {
  auto missing = [&applied](const char* rule) {
    auto found = applied.find(rule);
    return found == applied.end() || !found->second;
  };
  std::vector<std::string> rules;
  // What no trace of torch.profiler tells.
  rules.emplace_back(kImportHasNoRunQueue);
  rules.emplace_back(kImportHasNoGilWaits);
  if (missing("gc")) rules.emplace_back(kImportHasNoGc);
  if (missing("data")) rules.emplace_back(kImportHasNoData);
  if (missing("host_wait")) rules.emplace_back(kImportHasNoWaits);
  rules.emplace_back(
      "synchronizations that are not in the trace (calls of the driver, and those "
      "before it began) cannot be told from code");
  return rules;
}

}  // namespace lull::imports
