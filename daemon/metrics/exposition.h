// Series, each in its family; and Prometheus's text format, version 0.0.4, of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/metrics/families.h"

namespace lull::metrics {

inline constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

using Attributes = std::vector<std::pair<std::string, std::string>>;

// run="3f9a...",rank="0": what a series is told apart by. Values may be anything: what
// is not UTF-8 and control characters become U+FFFD, and they are cut after 128 bytes.
class Labels {
 public:
  Labels() = default;
  Labels(std::string_view name, std::string_view value) { Add(name, value); }
  // The same and one more.
  Labels With(std::string_view name, std::string_view value) const {
    Labels more = *this;
    more.Add(name, value);
    return more;
  }
  // As Prometheus reads them: values are escaped.
  const std::string& text() const { return text_; }
  // Name and value, not escaped.
  const Attributes& pairs() const { return pairs_; }

 private:
  void Add(std::string_view name, std::string_view value);
  Attributes pairs_;
  std::string text_;
};

struct Sample {
  Metric metric;
  Labels labels;
  int64_t value = 0;  // in the family's unit
  // Of a summary: this is its `_count`, and not its `_sum`.
  bool is_count = false;
};

// Keeps counters from going back from one answer to the next. Prometheus takes a
// counter that does for one that began anew at 0, and counts all of it once more. What
// a report says may go back a little: the idle time at the end of traced time is told
// as a whole, and a process turns out to be none of those that work.
class Rising {
 public:
  int64_t Hold(const std::string& series, int64_t value);
  // Before the next answer; forgets series that the last one did not have.
  void Next();

 private:
  absl::flat_hash_map<std::string, int64_t> before_;
  absl::flat_hash_map<std::string, int64_t> now_;
};

class Exposition {
 public:
  void Add(const Sample& sample);
  void Add(const std::vector<Sample>& samples);
  size_t series() const { return series_; }
  // In the order in which they came.
  const std::vector<Sample>& Of(Metric metric) const {
    return families_[static_cast<size_t>(metric)];
  }
  // Puts what was told before in the place of counters and sums that are less.
  void Hold(Rising* rising);

  // Families in their order, those without a sample left out.
  std::string Text() const;

 private:
  std::array<std::vector<Sample>, kMetrics> families_;
  size_t series_ = 0;
};

}  // namespace lull::metrics
