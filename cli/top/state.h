// What the user of `lull top` has chosen, and what keys do to it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lull {

// The table below the ranks.
enum class TopTable { kGaps, kSyncs, kHost, kWaits, kKernels };
constexpr int kTopTables = 5;

// Which rank comes first.
enum class TopOrder { kRank, kSlowestStep, kLeastBusy, kMostMemory };
constexpr int kTopOrders = 4;

struct TopState {
  TopTable table = TopTable::kGaps;
  TopOrder order = TopOrder::kRank;
  uint64_t last_ns = 60'000'000'000;  // how much of the job is shown; 0: all of it
  size_t first_row = 0;               // of the table: those before are scrolled away
  bool paused = false;
  bool help = false;
  std::string message;  // of the last command, or why there is no newer answer
};

// What a key asks for beyond a change of the state.
enum class TopCommand { kNone, kQuit, kAsk, kArm, kDisarm };

// `key`: a character; terminals' other keys come as those that do the same ('j' and 'k'
// for the arrows).
TopCommand Press(int key, TopState* state);

// "last 60 s", "whole job".
std::string SpanText(uint64_t last_ns);

// "gaps", "rank": as the status line names them.
const char* TableName(TopTable table);
const char* OrderName(TopOrder order);

}  // namespace lull
