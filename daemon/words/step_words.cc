#include "daemon/words/step_words.h"

#include "absl/strings/str_cat.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

constexpr uint64_t kLongNs = 5'000'000'000;
constexpr uint64_t kManySteps = 5;

}  // namespace

bool IsLongWithoutAStep(uint64_t since_step_ns, uint64_t step_ns) {
  return step_ns > 0 && since_step_ns >= kLongNs &&
         since_step_ns / kManySteps >= step_ns;
}

bool IsLongWithoutAStep(const v1::Job& job) {
  return IsLongWithoutAStep(job.since_step_ns(), job.step_ns());
}

std::string NoStepWords(uint64_t since_step_ns, uint64_t step_ns) {
  return absl::StrCat("no step has ended for ", FormatDuration(since_step_ns),
                      "; one takes ", FormatDuration(step_ns));
}

}  // namespace lull
