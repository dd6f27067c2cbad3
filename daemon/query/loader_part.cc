#include "daemon/query/loader_part.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace lull::query {
namespace {

std::optional<size_t> Innermost(Stacks& stacks, const std::vector<uint32_t>& frames,
                                LoaderFile file) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (stacks.FileOf(frames[i]) == file) return i;
  }
  return std::nullopt;
}

// "get" and "Queue.get": names are qualified from CPython 3.11 on.
bool IsNamed(Stacks& stacks, uint32_t frame, std::string_view name) {
  std::string_view function = stacks.Frame(frame).function;
  if (!function.ends_with(name)) return false;
  function.remove_suffix(name.size());
  return function.empty() || function.ends_with('.');
}

LoaderAt BelowFetch(Stacks& stacks, const std::vector<uint32_t>& frames, size_t fetch) {
  auto has = [&](LoaderFile file) {
    return std::any_of(frames.begin(), frames.begin() + static_cast<ptrdiff_t>(fetch),
                       [&](uint32_t frame) { return stacks.FileOf(frame) == file; });
  };
  if (fetch == 0) return {LoaderWork::kOther, 1};
  if (!has(LoaderFile::kCollate)) return {LoaderWork::kDataSet, fetch};
  // In a worker collate puts what it makes into shared memory at once.
  return {has(LoaderFile::kStorage) ? LoaderWork::kTransfer : LoaderWork::kCollate,
          fetch};
}

}  // namespace

LoaderAt AtInTraining(Stacks& stacks, const std::vector<uint32_t>& frames,
                      bool others_load) {
  if (auto fetch = Innermost(stacks, frames, LoaderFile::kFetch)) {
    return BelowFetch(stacks, frames, *fetch);
  }
  if (others_load) return {};
  for (size_t i = 0; i < frames.size(); ++i) {
    if (stacks.FileOf(frames[i]) == LoaderFile::kIterator &&
        IsNamed(stacks, frames[i], "__next__")) {
      return {LoaderWork::kOther, i + 1};  // the sampler, and what is between
    }
  }
  return {};
}

LoaderAt AtInWorker(Stacks& stacks, const std::vector<uint32_t>& frames) {
  if (auto fetch = Innermost(stacks, frames, LoaderFile::kFetch)) {
    return BelowFetch(stacks, frames, *fetch);
  }
  if (auto loop = Innermost(stacks, frames, LoaderFile::kWorker)) {
    if (*loop == 0) return {LoaderWork::kOther, 1};
    const uint32_t called = frames[*loop - 1];
    if (stacks.FileOf(called) != LoaderFile::kQueue) return {LoaderWork::kOther, *loop};
    if (IsNamed(stacks, called, "get")) return {LoaderWork::kWaiting, *loop};
    if (IsNamed(stacks, called, "put")) return {LoaderWork::kTransfer, *loop};
    return {LoaderWork::kOther, *loop};
  }
  auto queue = Innermost(stacks, frames, LoaderFile::kQueue);
  if (!queue || !IsNamed(stacks, frames[*queue], "_feed")) return {};
  if (*queue == 0) return {LoaderWork::kTransfer, 1};
  const bool waits = stacks.FileOf(frames[*queue - 1]) == LoaderFile::kThreading;
  return {waits ? LoaderWork::kWaiting : LoaderWork::kTransfer, *queue};
}

std::string LoaderClass(const std::vector<std::string>& scope_path) {
  constexpr char kHead[] = "enumerate(DataLoader)#";
  constexpr char kTail[] = ".__next__";
  std::string name = scope_path.empty() ? "" : scope_path.back();
  if (name.starts_with(kHead)) name.erase(0, sizeof kHead - 1);
  if (name.ends_with(kTail)) name.resize(name.size() - (sizeof kTail - 1));
  return name;
}

}  // namespace lull::query
