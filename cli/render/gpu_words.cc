#include "cli/render/gpu_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// Up to CUDA 12.9 CUPTI counts its versions (cupti_version.h); since 13.0 the number
// holds that of CUDA.
struct Numbered {
  uint32_t number;
  const char* cuda;
};
constexpr Numbered kNumbered[] = {
    {13, "11.0"}, {14, "11.1"}, {15, "11.2"}, {16, "11.5"}, {17, "11.6"},
    {18, "11.8"}, {19, "12.0"}, {20, "12.2"}, {21, "12.3"}, {22, "12.4"},
    {23, "12.5"}, {24, "12.6"}, {26, "12.8"}, {27, "12.9"}, {28, "12.9"},
};

}  // namespace

std::string VerdictText(absl::string_view verdict) {
  if (verdict.empty()) return "";
  return absl::StrCat(Shortened(verdict, 20), "-bound");
}

std::string CudaVersionOfCupti(uint32_t version) {
  if (version == 0) return "";
  if (version >= 100'000) {
    return absl::StrCat(version / 10'000, ".", version / 100 % 100);
  }
  for (const Numbered& known : kNumbered) {
    if (known.number == version) return known.cuda;
  }
  return absl::StrCat("API ", version);
}

}  // namespace lull
