// The rules of docs/blame.md, word for word: every instant is looked at by itself, and
// every question is answered by going through all that happened. Nothing is shared with
// the engine, nothing is sorted ahead, nothing is forgotten.
#include <algorithm>
#include <optional>
#include <set>

#include "tests/daemon/blame/story.h"

namespace lull::blame {
namespace {

constexpr uint64_t kInfinite = UINT64_MAX;

struct Known {  // what is known of an operation's submission
  std::optional<size_t> call;
  uint64_t first_ns = 0;  // start of the first operation of that call
};

struct Piece {
  Idle idle;
  bool residual = false;
  bool was_residual = false;  // before any delay
  size_t gap = 0;
};

class Judge {
 public:
  explicit Judge(const Story& story) : story_(story), options_(story.options) {}

  Telling Run() {
    FindWindows();
    FindCalls();
    FindPoints();
    for (const Operation& operation : story_.operations) {
      if (operation.end_ns > operation.start_ns) devices_.insert(operation.device);
    }
    for (DeviceId device : devices_) JudgeDevice(device);
    TellSyncs();
    TellSubmissions();
    Normalize(&telling_);
    return telling_;
  }

 private:
  static bool Covers(const Span& span, uint64_t at) {
    return span.start_ns <= at && at < span.end_ns;
  }
  template <typename T>
  static bool Covers(const T& item, uint64_t at) {
    return item.start_ns <= at && at < item.end_ns;
  }
  static bool Copies(const Operation& o) {
    return o.kind == OperationKind::kCopy || o.kind == OperationKind::kMemset;
  }

  void FindWindows() {
    std::vector<Mark> marks = story_.marks;
    std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
      return std::make_pair(a.time_ns, a.on) < std::make_pair(b.time_ns, b.on);
    });
    bool on = false;
    for (const Mark& mark : marks) {
      if (mark.on == on) continue;
      on = mark.on;
      if (on) windows_.push_back({mark.time_ns, kInfinite});
      if (!on) windows_.back().end_ns = mark.time_ns;
    }
    open_end_ = on;
    if (!on) return;
    uint64_t last = 0;
    for (const Operation& o : story_.operations) {
      if (o.end_ns > o.start_ns) last = std::max(last, o.end_ns);
    }
    windows_.back().end_ns = std::max(last, windows_.back().start_ns);
  }

  // In the order of starts, because a call waits for its next operation from the last.
  void FindCalls() {
    known_.resize(story_.operations.size());
    std::vector<size_t> order(story_.operations.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return story_.operations[a].start_ns < story_.operations[b].start_ns;
    });
    for (size_t i : order) {
      const Operation& operation = story_.operations[i];
      for (size_t c = 0; c < story_.calls.size(); ++c) {
        const ApiCall& call = story_.calls[c];
        if (call.correlation != operation.correlation) continue;
        if (!MayBeCallOf(c, operation)) continue;
        if (known_[i].call && !Outside(call, story_.calls[*known_[i].call])) continue;
        known_[i].call = c;
      }
      if (!known_[i].call) continue;
      known_[i].first_ns = operation.start_ns;
      for (size_t j = 0; j < known_.size(); ++j) {
        if (known_[j].call == known_[i].call) {
          known_[i].first_ns =
              std::min(known_[i].first_ns, story_.operations[j].start_ns);
        }
      }
    }
  }
  static bool Outside(const ApiCall& a, const ApiCall& b) {
    if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
    if (a.end_ns != b.end_ns) return a.end_ns > b.end_ns;
    return std::make_pair(a.tid, a.series) < std::make_pair(b.tid, b.series);
  }
  bool MayBeCallOf(size_t c, const Operation& operation) {
    const ApiCall& call = story_.calls[c];
    if (call.start_ns > operation.start_ns + options_.clock_tolerance_ns) return false;
    if (call.end_ns > operation.start_ns + options_.patience_ns) return false;
    std::optional<uint64_t> latest;
    for (size_t j = 0; j < known_.size(); ++j) {
      uint64_t start = story_.operations[j].start_ns;
      if (known_[j].call == c && start < operation.start_ns) {
        latest = std::max(latest.value_or(0), start);
      }
    }
    if (latest) return operation.start_ns - *latest <= options_.patience_ns;
    return operation.start_ns <= call.start_ns + options_.queue_ns;
  }

  void FindPoints() {
    std::set<uint64_t> points;
    auto add = [&](const auto& items) {
      for (const auto& item : items) {
        points.insert(item.start_ns);
        points.insert(item.end_ns);
      }
    };
    add(story_.operations);
    add(story_.calls);
    add(story_.host);
    add(story_.lost);
    add(windows_);
    for (uint64_t at = 0; at <= story_.End(); at += options_.coverage_ns) {
      points.insert(at);
    }
    for (const Operation& o : story_.operations) {
      if (o.start_ns > options_.patience_ns) {
        points.insert(o.start_ns - options_.patience_ns);
      }
    }
    for (const HostEvent& event : story_.host) {  // what a sync may owe after it
      if (event.kind == HostKind::kSync) {
        points.insert(event.end_ns + (event.end_ns - event.start_ns));
      }
    }
    points_.assign(points.begin(), points.end());
  }

  bool Busy(DeviceId device, uint64_t at, bool kernels = false) const {
    for (const Operation& o : story_.operations) {
      if (o.device == device && Covers(o, at) && !(kernels && Copies(o))) return true;
    }
    return false;
  }

  void JudgeDevice(DeviceId device) {
    uint64_t first = kInfinite;
    for (const Operation& o : story_.operations) {
      if (o.device == device && o.end_ns > o.start_ns)
        first = std::min(first, o.start_ns);
    }
    pieces_.clear();
    bool judged_first = false;
    for (const Span& window : windows_) {
      if (first >= window.end_ns) continue;
      bool has_first = !judged_first && first >= window.start_ns;
      JudgeWindow(device, window, has_first ? first : kInfinite);
      judged_first = true;
    }
    ApplyDelays();
    for (const Piece& piece : pieces_) telling_.idle.push_back(piece.idle);
  }

  void JudgeWindow(DeviceId device, const Span& window, uint64_t first) {
    uint64_t opened = window.start_ns;
    for (size_t i = 0; i + 1 < points_.size(); ++i) {
      uint64_t from = points_[i], to = points_[i + 1];
      if (!Covers(window, from)) continue;
      bool busy = Busy(device, from);
      Covered& covered = telling_.coverage[{device, from / options_.coverage_ns}];
      covered.traced_ns += to - from;
      if (busy) covered.busy_ns += to - from;
      if (Busy(device, from, true)) covered.kernel_ns += to - from;
      if (busy) {
        if (opened < from) JudgeGap(device, opened, from, true, from == first);
        opened = to;
      }
    }
    if (opened < window.end_ns) JudgeGap(device, opened, window.end_ns, false, false);
  }

  uint64_t SubmitTime(size_t operation) const {
    if (!known_[operation].call) return kInfinite;
    return story_.calls[*known_[operation].call].start_ns;
  }

  void JudgeGap(DeviceId device, uint64_t a, uint64_t b, bool has_x, bool is_first) {
    ++gap_;
    uint64_t from = a;  // before it, the gap is given up
    if (is_first && b - a > options_.patience_ns) from = b - options_.patience_ns;
    if (b > options_.longest_gap_ns) {
      uint64_t cut =
          (b - options_.longest_gap_ns) / options_.coverage_ns * options_.coverage_ns;
      from = std::max(from, cut);
    }
    bool torn = from > a;
    Facts facts = torn ? Facts{} : FactsOfStart(device, a);
    facts.torn = torn;
    facts.a = a;
    facts.b = b;
    facts.l = b;
    facts.ended_by_x = has_x;
    if (has_x) {
      size_t x = FindX(device, b);
      facts.known = known_[x].call.has_value();
      if (facts.known) AddX(x, a, &facts);
    } else {
      facts.known = facts.has_p;
      facts.tid = facts.p;
      facts.has_p = false;
      // What is never ended ends when all is known, also what took no time there.
      const bool never = open_end_ && b == windows_.back().end_ns;
      const uint64_t started = never ? kInfinite : b;
      if (facts.known) facts.before = BeforeOf(facts.tid, b, started, {}, {}).series;
    }
    if (facts.has_p) facts.p_before = BeforeOf(facts.p, facts.l, b, {}, {}).series;
    for (size_t i = 0; i + 1 < points_.size(); ++i) {
      if (points_[i] < a || points_[i] >= b) continue;
      // l may lie within.
      uint64_t middle = std::clamp(facts.l, points_[i], points_[i + 1]);
      JudgePiece(device, points_[i], middle, from, facts);
      JudgePiece(device, middle, points_[i + 1], from, facts);
    }
  }

  struct Facts {
    bool known = false;  // L; or without X, the thread
    bool torn = false;
    bool ended_by_x = false;
    uint64_t a = 0, b = 0, l = 0;
    uint64_t own_until_ns = 0;  // of the device's part, L's own
    ThreadId tid{};
    uint32_t before = 0, after = 0;
    bool launch_bound = false, dependency = false;
    bool has_p = false;
    ThreadId p{};
    uint32_t p_before = 0;
  };

  // P: launched the operation that ended at a, of several the last submitted.
  Facts FactsOfStart(DeviceId device, uint64_t a) const {
    Facts facts;
    std::pair<uint64_t, ThreadId> best;
    for (size_t i = 0; i < known_.size(); ++i) {
      const Operation& o = story_.operations[i];
      if (o.device != device || o.end_ns != a || o.start_ns == a) continue;
      if (!known_[i].call) continue;
      const ApiCall& call = story_.calls[*known_[i].call];
      if (facts.has_p && std::make_pair(call.start_ns, call.tid) < best) continue;
      best = {call.start_ns, call.tid};
      facts.has_p = true;
      facts.p = call.tid;
    }
    return facts;
  }

  size_t FindX(DeviceId device, uint64_t b) const {
    std::optional<size_t> x;
    auto rank = [&](size_t i) {
      const Operation& o = story_.operations[i];
      return std::make_tuple(SubmitTime(i), o.correlation, o.end_ns, o.context,
                             o.stream, o.series);
    };
    for (size_t i = 0; i < known_.size(); ++i) {
      const Operation& o = story_.operations[i];
      if (o.device != device || o.start_ns != b || o.end_ns == b) continue;
      if (!x || rank(i) < rank(*x)) x = i;
    }
    return *x;
  }

  void AddX(size_t x, uint64_t a, Facts* facts) const {
    size_t c = *known_[x].call;
    const ApiCall& call = story_.calls[c];
    facts->l = call.start_ns;
    if (known_[x].first_ns == story_.operations[x].start_ns) {
      const uint64_t from = std::max(a, call.start_ns);
      const uint64_t to = std::min(facts->b, call.end_ns);
      if (to > from && to - from > options_.slow_call_ns) facts->own_until_ns = to;
    }
    facts->tid = call.tid;
    std::optional<size_t> hook = HookOf(call);
    facts->after = hook ? story_.host[*hook].series : call.series;
    Last last = BeforeOf(call.tid, call.start_ns, known_[x].first_ns, hook, c);
    facts->before = last.series;
    uint64_t since = last.returned_ns <= facts->l ? last.returned_ns : last.end_ns;
    facts->launch_bound = last.any && facts->l - since <= options_.launch_bound_ns;
    facts->dependency = Depends(x, call.start_ns, a);
    if (facts->p == facts->tid) facts->has_p = false;
  }

  // The nearest to the middle of the call; of those as near, the innermost.
  std::optional<size_t> HookOf(const ApiCall& call) const {
    uint64_t middle = call.start_ns + (call.end_ns - call.start_ns) / 2;
    std::optional<size_t> best;
    uint64_t best_distance = 0;
    for (size_t i = 0; i < story_.host.size(); ++i) {
      const HostEvent& event = story_.host[i];
      if (event.tid != call.tid) continue;
      if (event.kind != HostKind::kLaunch && event.kind != HostKind::kSync) continue;
      uint64_t distance = 0;
      if (middle < event.start_ns) distance = event.start_ns - middle;
      if (middle > event.end_ns) distance = middle - event.end_ns;
      if (distance > options_.clock_tolerance_ns) continue;
      if (best && distance > best_distance) continue;
      if (best && distance == best_distance && Inside(story_.host[*best], event))
        continue;
      best = i;
      best_distance = distance;
    }
    return best;
  }
  static bool Inside(const HostEvent& a, const HostEvent& b) {
    if (a.start_ns != b.start_ns) return a.start_ns > b.start_ns;
    if (a.end_ns != b.end_ns) return a.end_ns < b.end_ns;
    return a.series < b.series;
  }

  struct Last {
    bool any = false;
    uint64_t start_ns = 0, end_ns = 0;
    bool hook = false;
    uint32_t series = 0;
    uint64_t returned_ns = 0;  // the later one of its end and its hook's
  };
  // What the thread submitted last that ended by `l`: calls with an operation that
  // started before `started_ns`, and hooked launches.
  Last BeforeOf(ThreadId tid, uint64_t l, uint64_t started_ns,
                std::optional<size_t> own_hook, std::optional<size_t> own_call) const {
    Last last;
    auto offer = [&](uint64_t start, uint64_t end, bool hook, uint32_t series,
                     uint64_t returned) {
      if (end > l) return;
      auto rank = [](const Last& x) {
        return std::make_tuple(x.start_ns, x.hook, ~x.end_ns, ~x.series);
      };
      Last other{true, start, end, hook, series, returned};
      if (!last.any || rank(last) < rank(other)) last = other;
    };
    for (size_t c = 0; c < story_.calls.size(); ++c) {
      const ApiCall& call = story_.calls[c];
      if (call.tid != tid || own_call == c) continue;
      bool submitted = false;
      for (size_t i = 0; i < known_.size(); ++i) {
        submitted = submitted ||
                    (known_[i].call == c && story_.operations[i].start_ns < started_ns);
      }
      if (!submitted) continue;
      std::optional<size_t> hook = HookOf(call);
      offer(call.start_ns, call.end_ns, false,
            hook ? story_.host[*hook].series : call.series,
            hook ? std::max(call.end_ns, story_.host[*hook].end_ns) : call.end_ns);
    }
    for (size_t i = 0; i < story_.host.size(); ++i) {
      const HostEvent& event = story_.host[i];
      if (event.tid != tid || event.kind != HostKind::kLaunch || own_hook == i)
        continue;
      offer(event.start_ns, event.end_ns, true, event.series, event.end_ns);
    }
    return last;
  }

  bool Depends(size_t x, uint64_t l, uint64_t a) const {
    const Operation& o = story_.operations[x];
    std::optional<size_t> previous;
    auto rank = [&](size_t i) {
      const Operation& p = story_.operations[i];
      return std::make_tuple(p.start_ns, p.end_ns, p.correlation);
    };
    for (size_t i = 0; i < known_.size(); ++i) {
      const Operation& p = story_.operations[i];
      if (p.context != o.context || p.stream != o.stream) continue;
      if (p.start_ns >= o.start_ns || p.start_ns + options_.queue_ns < o.start_ns)
        continue;
      if (!previous || rank(*previous) < rank(i)) previous = i;
    }
    uint64_t since = 0;
    if (previous) {
      const Operation& p = story_.operations[*previous];
      if (p.end_ns == a && Copies(p) != Copies(o)) return true;
      since = known_[*previous].call ? SubmitTime(*previous) : p.start_ns;
    }
    for (const StreamWait& wait : story_.waits) {
      if (wait.context != o.context || wait.stream != o.stream) continue;
      if (wait.time_ns + options_.queue_ns < o.start_ns) continue;
      if (previous && wait.time_ns <= since) continue;
      if (wait.time_ns < l) return true;
    }
    return false;
  }

  // The innermost event of that kind in which the thread is, or nullptr.
  const HostEvent* In(ThreadId tid, HostKind kind, uint64_t at) const {
    const HostEvent* found = nullptr;
    for (const HostEvent& event : story_.host) {
      if (event.tid != tid || event.kind != kind || !Covers(event, at)) continue;
      if (found == nullptr || Inside(event, *found)) found = &event;
    }
    return found;
  }

  // Likewise, or the one that it was in last, if it is over for less than the
  // tolerance.
  const HostEvent* JustIn(ThreadId tid, HostKind kind, uint64_t at) const {
    if (const HostEvent* now = In(tid, kind, at)) return now;
    const HostEvent* last = nullptr;
    for (const HostEvent& event : story_.host) {
      if (event.tid != tid || event.kind != kind || event.start_ns == event.end_ns ||
          event.end_ns > at || event.end_ns + options_.clock_tolerance_ns <= at) {
        continue;
      }
      if (last == nullptr || event.end_ns > last->end_ns ||
          (event.end_ns == last->end_ns && Inside(event, *last))) {
        last = &event;
      }
    }
    return last;
  }

  // Likewise, of either kind of host wait.
  const HostEvent* InHostWait(ThreadId tid, uint64_t at) const {
    const HostEvent* handover = In(tid, HostKind::kHandover, at);
    const HostEvent* other = In(tid, HostKind::kHostWait, at);
    if (handover == nullptr || other == nullptr) return other ? other : handover;
    return Inside(*handover, *other) ? handover : other;
  }

  void JudgePiece(DeviceId device, uint64_t start, uint64_t end, uint64_t from,
                  const Facts& facts) {
    if (start >= end) return;
    Piece piece;
    piece.gap = gap_;
    piece.idle.device = device;
    piece.idle.start_ns = start;
    piece.idle.end_ns = end;
    bool lost = std::any_of(story_.lost.begin(), story_.lost.end(),
                            [&](const Span& span) { return Covers(span, start); });
    if (!lost && facts.known && start >= from) {
      if (start >= facts.l && start < facts.own_until_ns) {
        Blame(Cause::kLaunchCall, facts.after, facts.tid, facts.before, facts, &piece);
      } else if (start >= facts.l) {
        Blame(facts.dependency ? Cause::kDependency : Cause::kLaunchLatency, 0,
              facts.tid, facts.before, facts, &piece);
      } else {
        JudgeInstant(start, facts, &piece);
      }
    }
    pieces_.push_back(piece);
  }

  static void Blame(Cause cause, uint32_t culprit, ThreadId tid, uint32_t before,
                    const Facts& facts, Piece* piece) {
    piece->idle.cause = cause;
    piece->idle.culprit = culprit;
    piece->idle.tid = tid;
    piece->idle.before = before;
    piece->idle.after = facts.after;
    piece->residual = piece->was_residual =
        cause == Cause::kHostCode || cause == Cause::kLaunchBound;
  }

  // By rules 1 to 4: the event of the thread that counts, and its cause.
  std::pair<const HostEvent*, Cause> First(ThreadId tid, uint64_t at) const {
    if (auto* event = In(tid, HostKind::kGc, at)) return {event, Cause::kGc};
    if (auto* event = In(tid, HostKind::kAllocator, at)) {
      return {event, Cause::kAllocator};
    }
    if (auto* scope = In(tid, HostKind::kDataScope, at)) {
      if (auto* sync = In(tid, HostKind::kSync, at)) return {sync, Cause::kSync};
      return {scope, Cause::kDataWait};
    }
    if (auto* event = In(tid, HostKind::kDataWait, at)) {
      return {event, Cause::kDataWait};
    }
    if (auto* event = In(tid, HostKind::kGilWait, at)) return {event, Cause::kGilWait};
    return {nullptr, Cause::kUnknown};
  }

  void JudgeInstant(uint64_t at, const Facts& facts, Piece* piece) const {
    ThreadId tid = facts.tid;
    uint32_t before = facts.before;
    bool launch_bound = facts.launch_bound;
    auto blame = [&](Cause cause, uint32_t culprit) {
      Blame(cause, culprit, tid, before, facts, piece);
    };
    if (auto [event, cause] = First(tid, at); event) return blame(cause, event->series);
    if (auto* waiting = InHostWait(tid, at)) {
      if (!facts.has_p || waiting->kind != HostKind::kHandover) {
        return blame(Cause::kHostWait, waiting->series);
      }
      const bool first = First(facts.p, at).first != nullptr;
      const HostEvent* other = InHostWait(facts.p, at);
      if (!first && other != nullptr && other->kind == HostKind::kHandover) {
        blame(Cause::kHostWait, waiting->series);
        piece->idle.other_wait = other->series;
        return;
      }
      tid = facts.p;
      before = facts.p_before;
      launch_bound = false;
      if (auto [event, cause] = First(tid, at); event) {
        return blame(cause, event->series);
      }
      if (other != nullptr) return blame(Cause::kHostWait, other->series);
    }
    if (auto* sync = In(tid, HostKind::kSync, at)) {
      return blame(Cause::kSync, sync->series);
    }
    if (!facts.torn && facts.ended_by_x) {
      if (auto* sync = JustIn(tid, HostKind::kSync, facts.a)) {
        uint64_t blocked_ns = sync->end_ns - sync->start_ns;
        if (at < sync->end_ns + blocked_ns) return blame(Cause::kSync, sync->series);
      }
    }
    if (facts.torn || !facts.ended_by_x) return;
    blame(launch_bound ? Cause::kLaunchBound : Cause::kHostCode, 0);
  }

  void ApplyDelays() {
    std::vector<RunDelay> delays = story_.delays;
    std::sort(delays.begin(), delays.end(), [](const RunDelay& a, const RunDelay& b) {
      return std::tie(a.end_ns, a.start_ns, a.tid, a.delay_ns) <
             std::tie(b.end_ns, b.start_ns, b.tid, b.delay_ns);
    });
    for (const RunDelay& delay : delays) {
      if (delay.end_ns - delay.start_ns <= options_.patience_ns) ApplyDelay(delay);
    }
  }

  void Split(uint64_t at) {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].idle.start_ns >= at || pieces_[i].idle.end_ns <= at) continue;
      Piece second = pieces_[i];
      pieces_[i].idle.end_ns = at;
      second.idle.start_ns = at;
      pieces_.insert(pieces_.begin() + static_cast<ptrdiff_t>(i) + 1, second);
    }
  }

  // Of one gap, by one thread, and whatever was taken of it since.
  uint64_t LengthAround(size_t at) const {
    auto goes_on = [](const Piece& a, const Piece& b) {
      return b.was_residual && a.gap == b.gap && a.idle.tid == b.idle.tid &&
             a.idle.end_ns == b.idle.start_ns;
    };
    size_t first = at, last = at;
    while (first > 0 && pieces_[first - 1].was_residual &&
           goes_on(pieces_[first - 1], pieces_[first])) {
      --first;
    }
    while (last + 1 < pieces_.size() && goes_on(pieces_[last], pieces_[last + 1])) {
      ++last;
    }
    return pieces_[last].idle.end_ns - pieces_[first].idle.start_ns;
  }

  // Short ones anywhere in the span, then long ones around the middle of when it may
  // have ended.
  void ApplyDelay(const RunDelay& delay) {
    const uint64_t left =
        Take(delay, delay.start_ns, delay.end_ns, false, delay.delay_ns);
    if (left == 0) return;
    const uint64_t least = std::min(delay.start_ns + delay.delay_ns, delay.end_ns);
    const uint64_t end = (least + delay.end_ns) / 2;
    const uint64_t start = left > end ? 0 : end - left;
    Take(delay, std::max(start, delay.start_ns), end, true, left);
  }

  uint64_t Take(const RunDelay& delay, uint64_t from, uint64_t to, bool longer,
                uint64_t left) {
    Split(from);
    Split(to);
    struct Stretch {
      uint64_t start_ns, end_ns;
      size_t gap;
    };
    std::vector<Stretch> stretches;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      if (!piece.residual || piece.idle.tid != delay.tid) continue;
      if (piece.idle.start_ns < from || piece.idle.end_ns > to) continue;
      const uint64_t most =
          delay.delay_ns + std::min<uint64_t>(delay.delay_ns, 1'000'000);
      if ((LengthAround(i) > most) != longer) continue;
      if (!stretches.empty() && stretches.back().gap == piece.gap &&
          stretches.back().end_ns == piece.idle.start_ns) {
        stretches.back().end_ns = piece.idle.end_ns;
      } else {
        stretches.push_back({piece.idle.start_ns, piece.idle.end_ns, piece.gap});
      }
    }
    while (left > 0 && !stretches.empty()) {
      auto longest = std::max_element(
          stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) {
            return a.end_ns - a.start_ns < b.end_ns - b.start_ns;
          });
      uint64_t end = std::min(longest->end_ns, longest->start_ns + left);
      Split(end);
      for (Piece& piece : pieces_) {
        if (piece.idle.start_ns < longest->start_ns || piece.idle.end_ns > end)
          continue;
        piece.idle.cause = Cause::kRunQueue;
        piece.residual = false;
      }
      left -= end - longest->start_ns;
      stretches.erase(longest);
    }
    return left;
  }

  void TellSyncs() {
    for (const HostEvent& event : story_.host) {
      if (event.kind != HostKind::kSync) continue;
      bool traced = false;
      for (const Span& window : windows_) {
        traced =
            traced || (Covers(window, event.start_ns) && event.end_ns <= window.end_ns);
      }
      for (const Span& lost : story_.lost) {
        if (lost.start_ns < event.end_ns && event.start_ns < lost.end_ns &&
            lost.start_ns < lost.end_ns && event.start_ns < event.end_ns) {
          traced = false;
        }
      }
      if (!traced) continue;
      SyncCost cost;
      cost.sync = event;
      for (size_t i = 0; i + 1 < points_.size(); ++i) {
        if (!Covers(event, points_[i])) continue;
        bool busy = false;
        for (DeviceId device : devices_) busy = busy || Busy(device, points_[i]);
        if (busy) cost.needed_ns += points_[i + 1] - points_[i];
      }
      telling_.syncs.push_back(cost);
    }
  }

  void TellSubmissions() {
    for (size_t i = 0; i < known_.size(); ++i) {
      Submission submission;
      submission.operation = story_.operations[i];
      if (known_[i].call) {
        const ApiCall& call = story_.calls[*known_[i].call];
        std::optional<size_t> hook = HookOf(call);
        if (hook) submission.launch = story_.host[*hook].series;
        submission.call = call.series;
        submission.tid = call.tid;
      }
      telling_.submissions.push_back(submission);
    }
  }

  const Story& story_;
  const Options& options_;
  std::vector<Span> windows_;
  bool open_end_ = false;     // of the last of them
  std::vector<Known> known_;  // by operation
  std::vector<uint64_t> points_;
  std::set<DeviceId> devices_;
  std::vector<Piece> pieces_;  // of one device, in order
  size_t gap_ = 0;
  Telling telling_;
};

}  // namespace

Telling JudgeByTheRules(const Story& story) { return Judge(story).Run(); }

}  // namespace lull::blame
