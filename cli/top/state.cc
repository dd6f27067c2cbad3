#include "cli/top/state.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// '+' and '-' go from one to the next; the last is the whole job.
constexpr uint64_t kSpans[] = {10 * kSecond,  30 * kSecond,   60 * kSecond,
                               300 * kSecond, 1800 * kSecond, 0};
constexpr uint64_t kDefaultSpan = 60 * kSecond;

template <typename Enum>
Enum Next(Enum value, int values) {
  return static_cast<Enum>((static_cast<int>(value) + 1) % values);
}

// One span further: +1 is longer. A span of the command line's that is none of these
// goes to the default.
uint64_t Beside(uint64_t span, int step) {
  const auto* at = std::find(std::begin(kSpans), std::end(kSpans), span);
  if (at == std::end(kSpans)) return kDefaultSpan;
  const auto index = std::distance(std::begin(kSpans), at) + step;
  return kSpans[std::clamp<ptrdiff_t>(index, 0, std::ssize(kSpans) - 1)];
}

void Show(TopTable table, TopState* state) {
  state->table = table;
  state->first_row = 0;
}

}  // namespace

TopCommand Press(int key, TopState* state) {
  // A page of help goes with any key.
  if (state->help && key != 'q') {
    state->help = false;
    return TopCommand::kNone;
  }
  switch (key) {
    case 'q':
      return TopCommand::kQuit;
    case 'h':
    case '?':
      state->help = true;
      return TopCommand::kNone;
    case 'p':
    case ' ':
      state->paused = !state->paused;
      return state->paused ? TopCommand::kNone : TopCommand::kAsk;
    case 's':
      state->order = Next(state->order, kTopOrders);
      return TopCommand::kNone;
    case '\t':
      Show(Next(state->table, kTopTables), state);
      return TopCommand::kNone;
    case 'j':
      ++state->first_row;
      return TopCommand::kNone;
    case 'k':
      if (state->first_row > 0) --state->first_row;
      return TopCommand::kNone;
    case '+':
    case '-':
      state->last_ns = Beside(state->last_ns, key == '+' ? 1 : -1);
      return TopCommand::kAsk;
    case 'a':
      return TopCommand::kArm;
    case 'd':
      return TopCommand::kDisarm;
    default:
      if (key >= '1' && key < '1' + kTopTables) {
        Show(static_cast<TopTable>(key - '1'), state);
      }
      return TopCommand::kNone;
  }
}

std::string SpanText(uint64_t last_ns) {
  return last_ns == 0 ? "whole job" : absl::StrCat("last ", FormatDuration(last_ns));
}

const char* TableName(TopTable table) {
  constexpr const char* kNames[] = {"gaps", "syncs", "host", "waits", "kernels"};
  return kNames[static_cast<int>(table)];
}

const char* OrderName(TopOrder order) {
  constexpr const char* kNames[] = {"rank", "slowest step", "least busy",
                                    "most memory"};
  return kNames[static_cast<int>(order)];
}

}  // namespace lull
