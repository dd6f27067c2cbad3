#include <cstdint>

#include "absl/strings/str_cat.h"
#include "daemon/advice/rules.h"
#include "daemon/advice/thresholds.h"
#include "daemon/words/format.h"
#include "daemon/words/memory_words.h"

namespace lull {
namespace {

double UnusedPercent(const v1::MemoryRow& row) {
  return Percent(
      static_cast<double>(Unused(row.peak_bytes(), row.reserved_peak_bytes())),
      static_cast<double>(row.reserved_peak_bytes()));
}

// The row of this process whose caching allocator holds most that it cannot hand out.
const v1::MemoryRow* MostFragmented(const v1::Memory& memory, uint32_t pid) {
  const v1::MemoryRow* worst = nullptr;
  for (const v1::MemoryRow& row : memory.rows()) {
    if (row.pid() != pid || !row.reserved_known()) continue;
    if (UnusedPercent(row) <= kUnusedReservedPercent) continue;
    if (worst == nullptr || UnusedPercent(row) > UnusedPercent(*worst)) worst = &row;
  }
  return worst;
}

// Tensors tell more than the segments that they lie in.
bool IsBetterEvidence(const v1::MemoryRow& a, const v1::MemoryRow& b) {
  auto of_tensors = [](const v1::MemoryRow& row) {
    return row.allocator() != "cuda" && row.allocator() != "pinned";
  };
  if (of_tensors(a) != of_tensors(b)) return of_tensors(a);
  return a.growth().bytes() > b.growth().bytes();
}

}  // namespace

void FragmentedCache(const Evidence& evidence, Findings& found) {
  const v1::Memory& memory = evidence.reply().memory();
  const v1::MallocRetries* worst = nullptr;
  for (const v1::MallocRetries& retries : memory.retries()) {
    if (retries.retries() == 0) continue;
    if (MostFragmented(memory, retries.pid()) == nullptr) continue;
    if (worst == nullptr || retries.total_ns() > worst->total_ns()) worst = &retries;
  }
  if (worst == nullptr) return;
  const v1::MemoryRow& row = *MostFragmented(memory, worst->pid());
  AddFinding(
      found, "fragmented_memory",
      absl::StrCat(RetryWords(*worst), "; PyTorch's allocator held up to ",
                   FormatBytes(row.reserved_peak_bytes()),
                   " and never handed out more than ", FormatBytes(row.peak_bytes()),
                   " of it"),
      "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or keep the shapes of "
      "large tensors the same from step to step",
      worst->total_ns(), false);
}

void GrowingMemory(const Evidence& evidence, Findings& found) {
  const v1::MemoryRow* worst = nullptr;
  for (const v1::MemoryRow& row : evidence.reply().memory().rows()) {
    if (!row.has_growth()) continue;
    if (worst == nullptr || IsBetterEvidence(row, *worst)) worst = &row;
  }
  if (worst == nullptr) return;
  AddFinding(
      found, "growing_memory",
      absl::StrCat("live memory of ", GrowthWords(*worst), ", in pid ", worst->pid()),
      "see what still refers to these blocks: losses or outputs that are collected "
      "with their graph (use .item() or .detach()), a cache without a limit",
      0, false);
}

}  // namespace lull
