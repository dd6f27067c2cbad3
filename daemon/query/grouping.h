// Series of several processes put together into the rows of a report.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/drawn_blocks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

struct Group {
  uint32_t label = 0;  // what tells rows of one site apart: API, generation, kind, ...
  uint32_t site = 0;   // id of the site, 0 = none
  Cell sum;
  Series longest;      // the series of the longest call
  uint64_t loads = 0;  // of sum.count: calls of a DataLoader's __next__
  int64_t live = 0;
  int64_t peak = 0;  // of each process, added up
  // Of drawn blocks, which are in none of the sums above but live and peak: what they
  // stand for. Its counts are of parts of a block (aggregate::kBlockParts).
  Cell drawn;
  bool estimated = false;  // some of it is of drawn blocks
  uint64_t calls() const { return sum.count + Blocks(drawn.count); }
  uint64_t frees() const { return sum.frees + Blocks(drawn.frees); }
  uint64_t bytes() const { return sum.amount + drawn.amount; }
  // To either side of bytes().
  uint64_t error_bytes() const {
    return estimated ? aggregate::ErrorOfDrawn(drawn.amount) : 0;
  }
  int64_t blocks() const {
    const int64_t parts = drawn.blocks();
    const auto whole =
        static_cast<int64_t>(Blocks(static_cast<uint64_t>(std::abs(parts))));
    return sum.blocks() + (parts < 0 ? -whole : whole);
  }

 private:
  static uint64_t Blocks(uint64_t parts) {
    return (parts + aggregate::kBlockParts / 2) / aggregate::kBlockParts;
  }
};

// Collects groups by (label, line | function | stack).
class Grouping {
 public:
  explicit Grouping(v1::GroupBy by) : by_(by) {}

  Group& At(uint32_t label, const Series& series);
  void Add(uint32_t label, const Series& series, const Cell& cell);

  // `better(a, b)`: a comes first.
  template <typename Better>
  std::vector<Group> Sorted(Better better) const {
    std::vector<Group> groups;
    for (const auto& [key, group] : groups_) groups.push_back(group);
    std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
      if (better(a, b)) return true;
      if (better(b, a)) return false;
      return std::make_pair(a.site, a.label) < std::make_pair(b.site, b.label);
    });
    return groups;
  }

 private:
  struct Key {
    uint32_t label, first, second;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.label, k.first, k.second);
    }
  };

  const v1::GroupBy by_;
  absl::flat_hash_map<Key, Group> groups_;
};

}  // namespace lull::query
