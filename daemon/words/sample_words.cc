#include "daemon/words/sample_words.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/words/format.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

constexpr const char* kRoles[] = {"main", "feeder", "autograd", "loader", "other"};
constexpr const char* kParts[][2] = {
    {"data_set", "data set and transforms"},
    {"collate", "collate"},
    {"transfer", "shared memory, pickling, queue"},
    {"other", "between these"},
};
constexpr const char* kPhaseParts[][2] = {
    {"imports", "imports"},         {"model_to_device", "model to a device"},
    {"first_steps", "first steps"}, {"evaluation", "evaluation"},
    {"checkpoint", "checkpoints"},  {"end", "end"},
};
constexpr double kMattersPercent = 10;

}  // namespace

const char* RoleKey(v1::HostSampleRole role) {
  auto number = static_cast<size_t>(role);
  return number < std::size(kRoles) ? kRoles[number] : "other";
}

const char* LoaderPartKey(v1::LoaderPart part) {
  auto number = static_cast<size_t>(part);
  return number < std::size(kParts) ? kParts[number][0] : "other";
}

const char* LoaderPartWords(v1::LoaderPart part) {
  auto number = static_cast<size_t>(part);
  return number < std::size(kParts) ? kParts[number][1] : "other";
}

const char* PhasePartKey(v1::PhasePartKind kind) {
  auto number = static_cast<size_t>(kind);
  return number < std::size(kPhaseParts) ? kPhaseParts[number][0] : "other";
}

const char* PhasePartWords(v1::PhasePartKind kind) {
  auto number = static_cast<size_t>(kind);
  return number < std::size(kPhaseParts) ? kPhaseParts[number][1] : "other";
}

uint64_t BatchesOf(const v1::LoaderLine& line, const v1::DataLoading& data) {
  return line.role() == v1::HOST_SAMPLE_ROLE_LOADER ? data.batches()
                                                    : data.own_batches();
}

std::string FormatSampled(const v1::SampledShare& share) {
  double half = (share.high_percent() - share.low_percent()) / 2;
  int digits = half >= 1 ? 0 : half >= 0.1 ? 1 : 2;
  return absl::StrFormat("%.*f %% ± %.*f", digits, share.percent(), digits, half);
}

std::string DoingWords(const v1::DoingLine& line) {
  std::string text = absl::StrCat(
      line.has_own() ? FormatSampled(line.own()) : Counted(line.samples(), "sample"),
      " in ", FormatSite(line.site()));
  if (!line.has_callee()) return text;
  return absl::StrCat(text, " → ", FormatSite(line.callee()));
}

bool Matters(const v1::DoingLine& line) {
  return line.own().percent() >= kMattersPercent;
}

}  // namespace lull
