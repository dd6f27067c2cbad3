// The rules of a gate as people write them: options, and [check] in lull.toml.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/check/allowance.h"
#include "daemon/check/rule.h"

namespace lull {

struct CheckRules {
  std::vector<check::Rule> rules;
  std::vector<check::Allowance> allowances;
  bool allow_failed_job = false;

  // All that is wrong is INVALID_ARGUMENT, and points at it.
  absl::Status AddRule(const std::string& where, const std::string& text);
  absl::Status AddAllowance(const std::string& where, const std::string& text);
  // [check] of a file:
  //   fail-if = ["sync.wasted_percent > 2"]
  //   allow-failed-job = true
  //   [[check.allow]]  file, line, function, rule, reason, until
  // A file without [check] says nothing, which is an error of one that was `named` for
  // its rules.
  absl::Status AddFile(const std::string& path, bool named = false);
};

}  // namespace lull
