#include "daemon/compare/sync_changes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/compare/per_step.h"
#include "daemon/compare/site_match.h"
#include "daemon/compare/statistics.h"

namespace lull::compare {
namespace {

// What two comparisons of many sites may claim by chance.
constexpr double kAlpha = 0.001;
constexpr double kDeviations = 3;  // of Poisson counts

struct Point {
  v1::Site site;
  std::string api;
  std::vector<std::array<double, kPieces>> calls;  // by run and piece
  LineText text;
  bool other_text = false;  // the runs have two of its line: it says nothing
  double all_calls = 0;
  double blocked_ms = 0;  // per step, summed over runs
  double wasted_ms = 0;
};

using SyncKey = std::tuple<std::string, int32_t, std::string, std::string>;

// Runs of one program may each have had a folder of their own: a file goes by the tail
// of its path, unless a run has two files with that tail.
class Files {
 public:
  explicit Files(const Runs& runs) {
    for (const Run& run : runs) {
      std::map<absl::string_view, absl::string_view> paths;  // by tail
      for (const ProcessReplies& replies : run.replies) {
        for (const v1::SyncPoint& row : replies.all.syncs().sync_points()) {
          const absl::string_view path = row.site().file(), tail = PathTail(path);
          if (paths.emplace(tail, path).first->second != path) {
            ambiguous_.insert(std::string(tail));
          }
        }
      }
    }
  }

  SyncKey KeyOf(const v1::SyncPoint& row) const {
    const v1::Site& site = row.site();
    std::string file(PathTail(site.file()));
    if (ambiguous_.count(file) > 0) file = site.file();
    return {std::move(file), site.line(), site.function(), row.api()};
  }

 private:
  std::set<std::string> ambiguous_;
};

class SyncSide {
 public:
  explicit SyncSide(const Runs& runs) : files_(runs) {
    for (size_t r = 0; r < runs.size(); ++r) {
      AddRun(runs[r], r, runs.size());
    }
    for (auto& [key, point] : points_by_key_) points.push_back(std::move(point));
    for (Point& point : points) {
      if (point.other_text) point.text = {};
      for (const auto& run : point.calls) {
        for (double calls : run) point.all_calls += calls;
      }
    }
  }

  double Rate(const Point& point) const {
    return all_steps > 0 ? point.all_calls / all_steps : 0;
  }

  SyncRate Told(const Point& point) const {
    SyncRate told;
    told.site = point.site;
    told.api = point.api;
    told.calls_per_step = Rate(point);
    told.calls = static_cast<uint64_t>(point.all_calls);
    const auto runs = static_cast<double>(steps.size());
    told.blocked_ms_per_step = point.blocked_ms / runs;
    if (traced_) told.wasted_ms_per_step = point.wasted_ms / runs;
    return told;
  }

  std::vector<Point> points;
  std::vector<std::array<double, kPieces>> steps;  // by run and piece
  double all_steps = 0;

 private:
  void AddRun(const Run& run, size_t number, size_t runs) {
    auto& own = steps.emplace_back();
    for (const ProcessSteps& process : run.processes) {
      for (size_t piece = 0; piece < kPieces; ++piece) {
        own[piece] += static_cast<double>(process.StepsOf(piece));
      }
    }
    for (double count : own) all_steps += count;
    const LineTexts lines = LinesOf(run);
    const PerStep per_step(run);
    traced_ = traced_ && per_step.traced();
    for (const ProcessReplies& replies : run.replies) {
      for (const v1::SyncPoint& row : replies.all.syncs().sync_points()) {
        Point& point = Of(row, runs, lines);
        point.blocked_ms += per_step.Host(row.blocked_ns());
        point.wasted_ms += per_step.Device(row.wasted_ns());
      }
      for (size_t piece = 0; piece < kPieces; ++piece) {
        for (const v1::SyncPoint& row : replies.pieces[piece].syncs().sync_points()) {
          Of(row, runs, lines).calls[number][piece] += static_cast<double>(row.calls());
        }
      }
    }
  }

  Point& Of(const v1::SyncPoint& row, size_t runs, const LineTexts& lines) {
    Point& point = points_by_key_[files_.KeyOf(row)];
    if (point.calls.empty()) {
      point.site = row.site();
      point.api = row.api();
      point.calls.resize(runs);
    }
    const auto text = lines.find({row.site().file(), row.site().line()});
    if (text == lines.end() || !text->second.known()) return point;
    if (!point.text.known()) point.text = text->second;
    if (point.text.own != text->second.own) point.other_text = true;
    return point;
  }

  const Files files_;
  std::map<SyncKey, Point> points_by_key_;
  bool traced_ = true;
};

Point Nowhere(size_t runs) {
  Point nowhere;
  nowhere.calls.resize(runs);
  return nowhere;
}

// The whole number of calls in each step; -1: it is none, or not in every piece.
double WholeRate(const SyncSide& side, const Point& point) {
  const double whole = std::round(side.Rate(point));
  // One call may lie on the other side of a boundary.
  auto fits = [whole](double calls, double steps) {
    return std::abs(calls - whole * steps) <= 1;
  };
  for (size_t run = 0; run < side.steps.size(); ++run) {
    double calls = 0, steps = 0;
    for (size_t piece = 0; piece < kPieces; ++piece) {
      if (!fits(point.calls[run][piece], side.steps[run][piece])) return -1;
      calls += point.calls[run][piece];
      steps += side.steps[run][piece];
    }
    if (!fits(calls, steps)) return -1;
  }
  return whole;
}

std::vector<double> PieceRates(const SyncSide& side, const Point& point) {
  std::vector<double> rates;
  for (size_t run = 0; run < side.steps.size(); ++run) {
    for (size_t piece = 0; piece < kPieces; ++piece) {
      rates.push_back(point.calls[run][piece] / std::max(1.0, side.steps[run][piece]));
    }
  }
  return rates;
}

bool Differs(const SyncSide& a, const Point& of_a, const SyncSide& b,
             const Point& of_b) {
  const double whole_a = WholeRate(a, of_a), whole_b = WholeRate(b, of_b);
  if (whole_a >= 0 && whole_b >= 0) return whole_a != whole_b;
  // As many steps on both sides.
  const double scale = a.all_steps / b.all_steps;
  const double calls_b = of_b.all_calls * scale;
  const double chance = std::sqrt(of_a.all_calls + calls_b * scale);
  if (std::abs(of_a.all_calls - calls_b) < kDeviations * chance) return false;
  return IsShown(WelchOf(PieceRates(a, of_a), PieceRates(b, of_b)), kAlpha);
}

double Cost(const SyncChange& change) {
  auto of = [](const SyncRate& rate) {
    return std::max(rate.blocked_ms_per_step, rate.wasted_ms_per_step.value_or(0));
  };
  return std::max(of(change.a), of(change.b));
}

}  // namespace

SyncChanges CompareSyncs(const Runs& runs_a, const Runs& runs_b) {
  const SyncSide a(runs_a), b(runs_b);
  auto places = [](const SyncSide& side) {
    std::vector<Place> result;
    for (const Point& point : side.points) {
      result.push_back({point.site, point.api, side.Rate(point), point.text});
    }
    return result;
  };
  SyncChanges changes;
  std::vector<bool> matched_a(a.points.size()), matched_b(b.points.size());
  auto files = [](const Runs& runs) {
    FileNames all;
    for (const Run& run : runs) all.merge(FilesOf(run));
    return all;
  };
  for (const Match& match :
       MatchPlaces(places(a), places(b), files(runs_a), files(runs_b))) {
    const Point &of_a = a.points[match.a], &of_b = b.points[match.b];
    matched_a[match.a] = matched_b[match.b] = true;
    const LineText &text_a = of_a.text, &text_b = of_b.text;
    SyncChange change{a.Told(of_a), b.Told(of_b), match.moved,
                      text_a.known() && text_b.known() && text_a.own != text_b.own};
    auto& list = Differs(a, of_a, b, of_b) ? changes.changed
                 : match.moved             ? changes.moved
                                           : changes.same;
    list.push_back(std::move(change));
  }
  for (size_t i = 0; i < a.points.size(); ++i) {
    if (matched_a[i]) continue;
    const bool shown = Differs(a, a.points[i], b, Nowhere(runs_b.size()));
    (shown ? changes.gone : changes.rare).push_back({a.Told(a.points[i]), {}, false});
  }
  for (size_t i = 0; i < b.points.size(); ++i) {
    if (matched_b[i]) continue;
    const bool shown = Differs(a, Nowhere(runs_a.size()), b, b.points[i]);
    (shown ? changes.came : changes.rare).push_back({{}, b.Told(b.points[i]), false});
  }
  for (auto* list : {&changes.gone, &changes.came, &changes.changed, &changes.moved,
                     &changes.same, &changes.rare}) {
    std::stable_sort(list->begin(), list->end(),
                     [](const SyncChange& one, const SyncChange& other) {
                       return Cost(one) > Cost(other);
                     });
  }
  return changes;
}

}  // namespace lull::compare
