#include "daemon/query/timeline_bins.h"

#include <algorithm>

namespace lull::query {
namespace {

double AsDouble(uint64_t value) { return static_cast<double>(value); }

template <typename List>
void CutZeros(List* list) {
  int size = list->size();
  while (size > 0 && list->Get(size - 1) == 0) --size;
  list->Truncate(size);
}

}  // namespace

TimelineBins::TimelineBins(uint64_t start_ns, uint64_t bin_ns, size_t count)
    : start_ns_(start_ns), bin_ns_(std::max<uint64_t>(1, bin_ns)), bins_(count) {}

template <typename Visitor>
void TimelineBins::ForEach(uint64_t begin_ns, uint64_t end_ns, Visitor&& visit) {
  begin_ns = std::max(begin_ns, start_ns_);
  for (uint64_t at = begin_ns; at < end_ns;) {
    const size_t index = static_cast<size_t>((at - start_ns_) / bin_ns_);
    if (index >= bins_.size()) return;
    const uint64_t next = std::min(end_ns, start_ns_ + (index + 1) * bin_ns_);
    visit(bins_[index], next - at);
    at = next;
  }
}

TimelineBins::Bin* TimelineBins::At(uint64_t at_ns) {
  if (at_ns < start_ns_) return nullptr;
  const uint64_t index = (at_ns - start_ns_) / bin_ns_;
  return index < bins_.size() ? &bins_[static_cast<size_t>(index)] : nullptr;
}

void TimelineBins::AddIdle(uint64_t begin_ns, uint64_t end_ns, size_t cause) {
  if (cause >= aggregate::kGapCauses) return;
  ForEach(begin_ns, end_ns,
          [cause](Bin& bin, uint64_t ns) { bin.idle_ns[cause] += ns; });
}

void TimelineBins::AddTraced(uint64_t begin_ns, uint64_t end_ns, uint64_t busy_ns,
                             uint64_t kernel_ns) {
  if (begin_ns >= end_ns) return;
  const double busy = AsDouble(busy_ns) / AsDouble(end_ns - begin_ns);
  const double kernel = AsDouble(kernel_ns) / AsDouble(end_ns - begin_ns);
  ForEach(begin_ns, end_ns, [&](Bin& bin, uint64_t ns) {
    bin.traced_ns += ns;
    bin.busy_ns += busy * AsDouble(ns);
    bin.kernel_ns += kernel * AsDouble(ns);
  });
}

void TimelineBins::AddSums(uint64_t at_ns, size_t cause, uint64_t idle_ns) {
  if (cause >= aggregate::kGapCauses) return;
  if (Bin* bin = At(at_ns)) bin->idle_ns[cause] += idle_ns;
}

void TimelineBins::AddTracedSums(uint64_t at_ns, uint64_t traced_ns, uint64_t busy_ns,
                                 uint64_t kernel_ns) {
  Bin* bin = At(at_ns);
  if (bin == nullptr) return;
  bin->traced_ns += traced_ns;
  bin->busy_ns += AsDouble(busy_ns);
  bin->kernel_ns += AsDouble(kernel_ns);
}

void TimelineBins::Fill(lull::v1::TimelineBand* band) const {
  for (const Bin& bin : bins_) {
    uint64_t idle_ns = 0;
    for (uint64_t ns : bin.idle_ns) idle_ns += ns;
    const uint64_t busy_ns = bin.traced_ns - std::min(bin.traced_ns, idle_ns);
    const double kernels =
        bin.busy_ns > 0 ? std::min(1.0, bin.kernel_ns / bin.busy_ns) : 0;
    band->add_traced_ns(bin.traced_ns);
    band->add_busy_ns(busy_ns);
    band->add_kernel_ns(static_cast<uint64_t>(kernels * AsDouble(busy_ns)));
  }
  CutZeros(band->mutable_traced_ns());
  CutZeros(band->mutable_busy_ns());
  CutZeros(band->mutable_kernel_ns());
  for (size_t cause = 0; cause < aggregate::kGapCauses; ++cause) {
    const bool any = std::any_of(bins_.begin(), bins_.end(), [cause](const Bin& bin) {
      return bin.idle_ns[cause] > 0;
    });
    if (!any) continue;
    auto* row = band->add_causes();
    row->set_cause(static_cast<lull::v1::GapCause>(cause));
    for (const Bin& bin : bins_) row->add_idle_ns(bin.idle_ns[cause]);
    CutZeros(row->mutable_idle_ns());
  }
}

}  // namespace lull::query
