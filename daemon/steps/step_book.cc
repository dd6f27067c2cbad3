#include "daemon/steps/step_book.h"

#include <algorithm>
#include <iterator>

#include "daemon/base/check.h"

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
  if (pending() >= options_.max_stretches) {
    // Without a boundary for so long: what there is explains no step any more.
    parts_ = {};
    torn_until_ns_ = end_ns;
    return;
  }
  parts_[static_cast<size_t>(part)].Add({start_ns, end_ns});
}

void StepBook::AddStep(uint64_t number, uint64_t start_ns, uint64_t end_ns,
                       uint64_t rested_ns) {
  if (start_ns >= end_ns) return;
  if (!steps_.empty() && steps_.back().end_ns > start_ns) return;
  Step step;
  step.number = number;
  step.start_ns = start_ns;
  step.end_ns = end_ns;
  step.rested_ns = rested_ns;
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
    LULL_CHECK(covered_ns <= length && length <= step.end_ns - step.start_ns,
               "the parts of a step are more than the step");
    step.part_ns[part] = length - covered_ns;
    covered_ns = length;
  }
}

// Those that reach into the step, clipped to it, by start.
StepBook::Spans StepBook::StretchesOf(size_t part, const Step& step) {
  const Stretches& all = parts_[part];
  Spans found;
  for (size_t i = 0; i < all.size() && all[i].start_ns < step.end_ns; ++i) {
    if (all[i].end_ns <= step.start_ns) continue;
    found.push_back({std::max(all[i].start_ns, step.start_ns),
                     std::min(all[i].end_ns, step.end_ns)});
  }
  return found;
}

// A stretch that reaches further keeps those that began after it.
void StepBook::DropBefore(uint64_t time_ns) {
  for (Stretches& part : parts_) {
    size_t ended = 0;
    while (ended < part.size() && part[ended].end_ns <= time_ns) ++ended;
    part.DropFront(ended);
  }
}

size_t StepBook::pending() const {
  size_t sum = 0;
  for (const Stretches& part : parts_) sum += part.size();
  return sum;
}

void StepBook::Advance(uint64_t host_ns, uint64_t gpu_ns, std::vector<Step>* done) {
  for (Stretches& part : parts_) part.Settle();
  uint64_t over = 0;
  while (!steps_.empty()) {
    Step& step = steps_.front();
    const uint64_t reach = step.end_ns + options_.patience_ns;
    if (reach > host_ns) break;
    if (reach > gpu_ns && TouchesTraced({step.start_ns, step.end_ns})) break;
    DropBefore(step.start_ns);
    if (step.start_ns >= torn_until_ns_) {
      Cut(step);
      done->push_back(step);
    }
    over = step.end_ns;
    steps_.pop_front();
  }
  auto ended = [&](const Span& span) { return span.end_ns <= over; };
  std::erase_if(traced_, ended);
  std::erase_if(lost_, ended);
}

}  // namespace lull::steps
