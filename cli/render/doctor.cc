#include "cli/render/doctor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/render/table.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

const char* StatusName(Check::Status status) {
  switch (status) {
    case Check::Status::kOk:
      return "ok";
    case Check::Status::kWarning:
      return "warning";
    case Check::Status::kError:
      return "error";
  }
  return "error";
}

}  // namespace

std::string DoctorText(const std::vector<Check>& checks) {
  Table table({"check", "status", "found"});
  for (const Check& check : checks) {
    table.AddRow({check.name, StatusName(check.status), Printable(check.detail)});
    if (!check.advice.empty()) table.AddNote(absl::StrCat("-> ", check.advice));
  }
  auto count = [&checks](Check::Status status) {
    return std::count_if(checks.begin(), checks.end(), [status](const Check& check) {
      return check.status == status;
    });
  };
  auto errors = count(Check::Status::kError);
  auto warnings = count(Check::Status::kWarning);
  std::string verdict =
      errors > 0     ? absl::StrCat("lull cannot work here: ", errors, " to fix.")
      : warnings > 0 ? absl::StrCat("lull works here; ", warnings, " to look at.")
                     : "lull works here.";
  return absl::StrCat(table.Text(), "\n", verdict, "\n");
}

Json DoctorJson(const std::vector<Check>& checks) {
  Json rows = Json::array();
  for (const Check& check : checks) {
    rows.push_back({{"name", check.name},
                    {"status", StatusName(check.status)},
                    {"detail", check.detail},
                    {"advice", check.advice}});
  }
  return {{"checks", std::move(rows)}};
}

}  // namespace lull
