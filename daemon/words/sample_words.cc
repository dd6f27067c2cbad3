#include "daemon/words/sample_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/format.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

constexpr double kMattersPercent = 10;

}  // namespace

std::string RoleKey(v1::HostSampleRole role) { return KeyOf(role, "other"); }
std::string LoaderPartKey(v1::LoaderPart part) { return KeyOf(part, "other"); }

const char* LoaderPartWords(v1::LoaderPart part) {
  switch (part) {
    case v1::LOADER_PART_DATA_SET:
      return "data set and transforms";
    case v1::LOADER_PART_COLLATE:
      return "collate";
    case v1::LOADER_PART_TRANSFER:
      return "shared memory, pickling, queue";
    case v1::LOADER_PART_OTHER:
      return "between these";
    default:
      return "other";
  }
}

std::string PhasePartWords(v1::PhasePartKind kind) {
  if (kind == v1::PHASE_PART_MODEL_TO_DEVICE) return "model to a device";
  if (kind == v1::PHASE_PART_CHECKPOINT) return "checkpoints";
  return absl::StrReplaceAll(KeyOf(kind, "other"), {{"_", " "}});
}

uint64_t BatchesOf(const v1::LoaderLine& line, const v1::DataLoading& data) {
  return line.role() == v1::HOST_SAMPLE_ROLE_LOADER ? data.batches()
                                                    : data.own_batches();
}

std::string FormatSampled(const v1::SampledShare& share) {
  // For a trace that tells every instant.
  if (share.high_percent() <= share.low_percent()) {
    return absl::StrFormat("%.1f %%", share.percent());
  }
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
