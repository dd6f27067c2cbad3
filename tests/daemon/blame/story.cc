#include "tests/daemon/blame/story.h"

#include <algorithm>
#include <functional>

namespace lull::blame {
namespace {

auto Key(const Operation& o) {
  return std::make_tuple(o.device, o.start_ns, o.end_ns, o.correlation, o.context,
                         o.stream, o.series, o.kind);
}
auto Key(const Idle& i) {
  return std::make_tuple(i.device, i.start_ns, i.end_ns, i.cause, i.culprit, i.before,
                         i.after, i.tid, i.other_wait);
}
auto Key(const SyncCost& s) {
  return std::make_tuple(s.sync.start_ns, s.sync.end_ns, s.sync.tid, s.sync.series,
                         s.needed_ns);
}
auto Key(const Submission& s) {
  return std::make_tuple(Key(s.operation), s.launch, s.call, s.tid);
}

template <typename T>
void SortByKey(std::vector<T>* items) {
  std::sort(items->begin(), items->end(),
            [](const T& a, const T& b) { return Key(a) < Key(b); });
}

// One thing to be added, the mark that it must not be later than, and which mark.
struct Item {
  uint64_t due_ns;
  bool host;
  std::function<void(Engine&)> add;
};

std::vector<Item> Items(const Story& story) {
  std::vector<Item> items;
  auto all = [&](const auto& things, bool host, auto due) {
    for (const auto& thing : things) {
      items.push_back({due(thing), host, [&thing](Engine& e) { e.Add(thing); }});
    }
  };
  auto end = [](const auto& thing) { return thing.end_ns; };
  all(story.operations, false, end);
  all(story.calls, false, end);
  all(story.waits, false, [](const StreamWait& wait) { return wait.time_ns; });
  all(story.host, true, end);
  all(story.delays, true, end);
  for (const Mark& mark : story.marks) {
    items.push_back({mark.time_ns, false, [&mark](Engine& e) {
                       mark.on ? e.Trace(mark.time_ns) : e.Untrace(mark.time_ns);
                     }});
  }
  for (const Span& lost : story.lost) {
    items.push_back({lost.end_ns, false,
                     [&lost](Engine& e) { e.Lost(lost.start_ns, lost.end_ns); }});
  }
  return items;
}

}  // namespace

bool operator==(const Operation& a, const Operation& b) { return Key(a) == Key(b); }
bool operator==(const Idle& a, const Idle& b) { return Key(a) == Key(b); }
bool operator==(const SyncCost& a, const SyncCost& b) { return Key(a) == Key(b); }
bool operator==(const Submission& a, const Submission& b) { return Key(a) == Key(b); }

std::ostream& operator<<(std::ostream& out, const Idle& idle) {
  return out << "device " << idle.device << " [" << idle.start_ns << ", " << idle.end_ns
             << ") cause " << int{static_cast<uint8_t>(idle.cause)} << " culprit "
             << idle.culprit << " before " << idle.before << " after " << idle.after
             << " tid " << static_cast<uint32_t>(idle.tid) << " other wait "
             << idle.other_wait;
}
std::ostream& operator<<(std::ostream& out, const SyncCost& cost) {
  return out << "sync " << cost.sync.series << " [" << cost.sync.start_ns << ", "
             << cost.sync.end_ns << ") needed " << cost.needed_ns;
}
std::ostream& operator<<(std::ostream& out, const Submission& submission) {
  const Operation& o = submission.operation;
  return out << "operation " << o.series << " [" << o.start_ns << ", " << o.end_ns
             << ") correlation " << static_cast<uint32_t>(o.correlation) << " launch "
             << submission.launch << " call " << submission.call << " tid "
             << static_cast<uint32_t>(submission.tid);
}

uint64_t Story::End() const {
  uint64_t end = 0;
  for (const Item& item : Items(*this)) end = std::max(end, item.due_ns);
  return end;
}

void Normalize(Telling* telling) {
  SortByKey(&telling->idle);
  SortByKey(&telling->syncs);
  SortByKey(&telling->submissions);
  std::vector<Idle> merged;
  for (const Idle& part : telling->idle) {
    if (!merged.empty()) {
      Idle joined = merged.back();
      joined.end_ns = part.end_ns;
      Idle widened = part;
      widened.start_ns = joined.start_ns;
      if (merged.back().end_ns == part.start_ns && joined == widened) {
        merged.back() = joined;
        continue;
      }
    }
    merged.push_back(part);
  }
  telling->idle = merged;
}

void Recorder::OnIdle(const Idle& idle) {
  telling_.idle.push_back(idle);
  starts_.emplace_back(idle.device, idle.start_ns);
}

void Recorder::OnSubmission(const Submission& submission) {
  telling_.submissions.push_back(submission);
  starts_.emplace_back(submission.operation.device, submission.operation.start_ns);
}

void Recorder::OnCoverage(const Coverage& piece) {
  covered_[piece.device] = piece.end_ns;
  Covered& sums = telling_.coverage[{piece.device, piece.start_ns / unit_ns_}];
  sums.traced_ns += piece.end_ns - piece.start_ns;
  sums.busy_ns += piece.busy_ns;
  sums.kernel_ns += piece.kernel_ns;
  if ((piece.end_ns - 1) / unit_ns_ != piece.start_ns / unit_ns_) ++out_of_step_;
}

void Recorder::EndOfAdvance() {
  for (const auto& [device, start] : starts_) {
    if (start >= covered_[device] || start < was_covered_[device]) ++out_of_step_;
  }
  starts_.clear();
  was_covered_ = covered_;
}

Telling Recorder::Take() {
  Normalize(&telling_);
  return telling_;
}

Telling TellAtOnce(const Story& story, Counters* counters) {
  Recorder recorder(story.options.coverage_ns);
  Engine engine(story.options, recorder);
  for (const Item& item : Items(story)) item.add(engine);
  engine.Finish();
  *counters = engine.counters();
  return recorder.Take();
}

Telling TellInPieces(const Story& story, uint64_t seed, Counters* counters,
                     int* out_of_step) {
  std::mt19937_64 random(seed);
  Recorder recorder(story.options.coverage_ns);
  Engine engine(story.options, recorder);
  std::vector<Item> items = Items(story);
  std::shuffle(items.begin(), items.end(), random);
  uint64_t host = 0, gpu = 0;
  const uint64_t step = 1 + random() % (1 + story.End() / (1 + random() % 30));
  while (!items.empty()) {
    if (random() % 3 != 0) host += random() % (2 * step);
    if (random() % 3 != 0) gpu += random() % (2 * step);
    std::erase_if(items, [&](const Item& item) {
      if (item.due_ns >= (item.host ? host : gpu) && random() % 20 != 0) return false;
      item.add(engine);
      return true;
    });
    engine.Advance(host, gpu);
    recorder.EndOfAdvance();
  }
  *out_of_step = recorder.out_of_step();
  engine.Finish();
  *counters = engine.counters();
  return recorder.Take();
}

}  // namespace lull::blame
