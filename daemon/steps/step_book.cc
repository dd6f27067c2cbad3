#include "daemon/steps/step_book.h"

#include <algorithm>
#include <iterator>

namespace lull::steps {
namespace {

constexpr uint64_t kNever = UINT64_MAX;
// Garbage in: a process does not trace or lose records so often within one step.
constexpr size_t kMostSpans = 10'000;

bool IsOfDevice(size_t part) {
  return part <= static_cast<size_t>(Part::kCommunication);
}

bool StartsBefore(const Span& a, const Span& b) { return a.start_ns < b.start_ns; }

bool Overlaps(const Span& a, const Span& b) {
  return a.start_ns < b.end_ns && b.start_ns < a.end_ns;
}

// The union of both, as stretches that do not touch. Each is in order of starts.
std::vector<Span> Merged(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> in, out;
  in.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(in),
             StartsBefore);
  for (const Span& span : in) {
    if (out.empty() || span.start_ns > out.back().end_ns) {
      out.push_back(span);
    } else {
      out.back().end_ns = std::max(out.back().end_ns, span.end_ns);
    }
  }
  return out;
}

uint64_t Length(const std::vector<Span>& spans) {
  uint64_t length = 0;
  for (const Span& span : spans) length += span.end_ns - span.start_ns;
  return length;
}

}  // namespace

void StepBook::Add(Part part, uint64_t start_ns, uint64_t end_ns) {
  if (start_ns >= end_ns || end_ns <= torn_until_ns_) return;
  if (pending_ >= options_.max_stretches) {
    // Without a boundary for so long: what there is explains no step any more.
    DropBefore(kNever);
    torn_until_ns_ = end_ns;
    return;
  }
  Stretches& all = parts_[static_cast<size_t>(part)];
  if (!all.spans.empty() && all.spans.back().start_ns > start_ns) all.sorted = false;
  all.spans.push_back({start_ns, end_ns});
  ++pending_;
}

void StepBook::AddStep(uint64_t number, uint64_t start_ns, uint64_t end_ns) {
  if (start_ns >= end_ns) return;
  if (!steps_.empty() && steps_.back().end_ns > start_ns) return;
  Step step;
  step.number = number;
  step.start_ns = start_ns;
  step.end_ns = end_ns;
  steps_.push_back(step);
}

void StepBook::Trace(uint64_t time_ns) {
  if (!traced_.empty() && traced_.back().end_ns == kNever) return;
  if (traced_.size() < kMostSpans) traced_.push_back({time_ns, kNever});
}

void StepBook::Untrace(uint64_t time_ns) {
  if (!traced_.empty() && traced_.back().end_ns == kNever) {
    traced_.back().end_ns = std::max(time_ns, traced_.back().start_ns);
  }
}

void StepBook::Lost(uint64_t start_ns, uint64_t end_ns) {
  if (lost_.size() < kMostSpans) lost_.push_back({start_ns, end_ns});
}

bool StepBook::TouchesTraced(const Span& span) const {
  return std::any_of(traced_.begin(), traced_.end(),
                     [&](const Span& traced) { return Overlaps(traced, span); });
}

bool StepBook::IsTraced(const Span& span) const {
  bool inside = std::any_of(traced_.begin(), traced_.end(), [&](const Span& traced) {
    return traced.start_ns <= span.start_ns && span.end_ns <= traced.end_ns;
  });
  return inside && std::none_of(lost_.begin(), lost_.end(),
                                [&](const Span& lost) { return Overlaps(lost, span); });
}

// In the order of the parts, so that each takes what no earlier one has. Linear in the
// stretches of the step.
void StepBook::Cut(Step& step) {
  step.traced = IsTraced({step.start_ns, step.end_ns});
  Spans covered;  // by the parts so far
  uint64_t covered_ns = 0;
  for (size_t part = 0; part < kParts; ++part) {
    if (IsOfDevice(part) && !step.traced) continue;
    covered = Merged(covered, StretchesOf(part, step));
    uint64_t length = Length(covered);
    step.part_ns[part] = length - covered_ns;
    covered_ns = length;
  }
}

// Those that reach into the step, clipped to it, by start.
StepBook::Spans StepBook::StretchesOf(size_t part, const Step& step) {
  Stretches& all = parts_[part];
  if (!all.sorted) {
    std::sort(all.spans.begin() + static_cast<ptrdiff_t>(all.first), all.spans.end(),
              StartsBefore);
    all.sorted = true;
  }
  while (all.first < all.spans.size() && all.spans[all.first].end_ns <= step.start_ns) {
    ++all.first;
  }
  Spans found;
  for (size_t i = all.first; i < all.spans.size(); ++i) {
    const Span& span = all.spans[i];
    if (span.start_ns >= step.end_ns) break;
    if (span.end_ns <= step.start_ns) continue;
    found.push_back(
        {std::max(span.start_ns, step.start_ns), std::min(span.end_ns, step.end_ns)});
  }
  return found;
}

void StepBook::DropBefore(uint64_t time_ns) {
  auto ended = [&](const Span& span) { return span.end_ns <= time_ns; };
  pending_ = 0;
  for (Stretches& part : parts_) {
    std::erase_if(part.spans, ended);
    part.first = 0;
    pending_ += part.spans.size();
  }
  std::erase_if(traced_, ended);
  std::erase_if(lost_, ended);
}

void StepBook::Advance(uint64_t host_ns, uint64_t gpu_ns, std::vector<Step>* done) {
  uint64_t over = 0;
  while (!steps_.empty()) {
    Step& step = steps_.front();
    const uint64_t reach = step.end_ns + options_.patience_ns;
    if (reach > host_ns) break;
    if (reach > gpu_ns && TouchesTraced({step.start_ns, step.end_ns})) break;
    if (step.start_ns >= torn_until_ns_) {
      Cut(step);
      done->push_back(step);
    }
    over = step.end_ns;
    steps_.pop_front();
  }
  if (over != 0) DropBefore(over);
}

}  // namespace lull::steps
