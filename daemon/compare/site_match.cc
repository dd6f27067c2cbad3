#include "daemon/compare/site_match.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "daemon/compare/statistics.h"

namespace lull::compare {
namespace {

// More in one function are matched by their order alone: the table below grows with the
// product of both.
constexpr size_t kMostAligned = 300;
// What a place without a partner costs: more than all that partners can differ by, so
// that as many as possible have one.
constexpr double kLeftOut = 1024;

using Indices = std::vector<size_t>;

class Matcher {
 public:
  Matcher(const std::vector<Place>& a, const std::vector<Place>& b)
      : a_(a), b_(b), taken_a_(a.size()), taken_b_(b.size()) {}

  using KeyOfPlace = absl::FunctionRef<std::string(const Place&)>;

  // Aligns what is left and has the same key.
  void Pass(KeyOfPlace key, bool moved, bool same_rate = false) {
    std::map<std::string, std::pair<Indices, Indices>> groups;
    Gather(a_, taken_a_, key, [&](const std::string& k) { return &groups[k].first; });
    Gather(b_, taken_b_, key, [&](const std::string& k) { return &groups[k].second; });
    // Groups with as many on both sides say how far their files' lines moved.
    for (bool equal : {true, false}) {
      for (auto& [name, group] : groups) {
        auto& [of_a, of_b] = group;
        if (of_a.empty() || of_b.empty() || (of_a.size() == of_b.size()) != equal) {
          continue;
        }
        Align(of_a, of_b, moved, same_rate);
      }
    }
  }

  std::vector<Match> Take() { return std::move(matches_); }

 private:
  template <typename GroupOf>
  static void Gather(const std::vector<Place>& places, const std::vector<bool>& taken,
                     KeyOfPlace key, GroupOf group_of) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (taken[i]) continue;
      std::string k = key(places[i]);
      if (!k.empty()) group_of(k)->push_back(i);
    }
  }

  // What has the same text first.
  void Align(Indices of_a, Indices of_b, bool moved, bool same_rate) {
    std::map<std::string, std::pair<Indices, Indices>> by_text;
    for (size_t i : of_a) by_text[a_[i].text.own].first.push_back(i);
    for (size_t i : of_b) by_text[b_[i].text.own].second.push_back(i);
    for (auto& [text, group] : by_text) {
      if (text.empty()) continue;  // not known
      AlignByLine(std::move(group.first), std::move(group.second), moved, same_rate);
    }
    std::erase_if(of_a, [this](size_t i) { return taken_a_[i]; });
    std::erase_if(of_b, [this](size_t i) { return taken_b_[i]; });
    AlignByLine(std::move(of_a), std::move(of_b), moved, same_rate);
  }

  // In the order of lines: as many as may be the same, in the cheapest way.
  void AlignByLine(Indices of_a, Indices of_b, bool moved, bool same_rate) {
    SortByLine(a_, &of_a);
    SortByLine(b_, &of_b);
    const size_t n = of_a.size(), m = of_b.size();
    if (n == 0 || m == 0) return;
    if (n > kMostAligned || m > kMostAligned || AllMayBeOne(of_a, of_b)) {
      for (size_t i = 0; i < std::min(n, m); ++i) {
        if (MayBeOne(of_a[i], of_b[i])) Add(of_a[i], of_b[i], moved, same_rate);
      }
      return;
    }
    const double shift = ShiftOf(a_[of_a[0]].site.file());
    auto price = [&](size_t i, size_t j) {
      return MayBeOne(of_a[i], of_b[j]) ? Unlike(of_a[i], of_b[j], shift)
                                        : 2 * kLeftOut;  // never the cheapest
    };
    // cost[i][j]: of the first i against the first j.
    std::vector<std::vector<double>> cost(n + 1, std::vector<double>(m + 1));
    for (size_t i = 0; i <= n; ++i) {
      for (size_t j = 0; j <= m; ++j) {
        if (i == 0 || j == 0) {
          cost[i][j] = kLeftOut * static_cast<double>(i + j);
          continue;
        }
        cost[i][j] = std::min({cost[i - 1][j] + kLeftOut, cost[i][j - 1] + kLeftOut,
                               cost[i - 1][j - 1] + price(i - 1, j - 1)});
      }
    }
    size_t i = n, j = m;
    while (i > 0 && j > 0) {
      if (MayBeOne(of_a[i - 1], of_b[j - 1]) &&
          cost[i - 1][j - 1] + price(i - 1, j - 1) <= cost[i][j]) {
        Add(of_a[i - 1], of_b[j - 1], moved, same_rate);
        --i, --j;
      } else {
        cost[i - 1][j] + kLeftOut <= cost[i][j] ? --i : --j;
      }
    }
  }

  bool MayBeOne(size_t a, size_t b) const {
    return MayBeOneLine(a_[a].text, b_[b].text);
  }

  // Whether there is nothing to choose: as many on both sides, each with its own.
  bool AllMayBeOne(const Indices& of_a, const Indices& of_b) const {
    if (of_a.size() != of_b.size()) return false;
    for (size_t i = 0; i < of_a.size(); ++i) {
      if (!MayBeOne(of_a[i], of_b[i])) return false;
    }
    return true;
  }

  static void SortByLine(const std::vector<Place>& places, Indices* indices) {
    std::stable_sort(indices->begin(), indices->end(), [&](size_t one, size_t other) {
      return places[one].site.line() < places[other].site.line();
    });
  }

  // 0 to 1 for calls per step that differ, and less for lines.
  double Unlike(size_t a, size_t b, double shift) const {
    const double most = std::max(a_[a].rate, b_[b].rate);
    const double rates = most > 0 ? std::abs(a_[a].rate - b_[b].rate) / most : 0;
    const double lines = std::abs(LinesApart(a, b) - shift);
    return rates + 0.5 * lines / (lines + 10);
  }

  double LinesApart(size_t a, size_t b) const {
    return static_cast<double>(b_[b].site.line()) -
           static_cast<double>(a_[a].site.line());
  }

  double ShiftOf(const std::string& file) const {
    auto it = shifts_.find(file);
    return it == shifts_.end() ? 0 : Median(it->second);
  }

  void Add(size_t a, size_t b, bool moved, bool same_rate) {
    if (same_rate && std::abs(a_[a].rate - b_[b].rate) > 0.05 * a_[a].rate) return;
    taken_a_[a] = taken_b_[b] = true;
    matches_.push_back({a, b, moved});
    shifts_[a_[a].site.file()].push_back(LinesApart(a, b));
  }

  const std::vector<Place>& a_;
  const std::vector<Place>& b_;
  std::vector<bool> taken_a_, taken_b_;
  std::map<std::string, std::vector<double>> shifts_;  // by file of A
  std::vector<Match> matches_;
};

std::string Joined(absl::string_view file, const Place& place) {
  return absl::StrCat(file, "\n", place.site.function(), "\n", place.api);
}

bool IsOfLibrary(absl::string_view path) {
  for (absl::string_view folder :
       {"/site-packages/", "/dist-packages/", "/lib/python"}) {
    if (path.find(folder) != absl::string_view::npos) return true;
  }
  return false;
}

absl::string_view NameOfFile(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

// The paths without the components at their ends that are the same.
std::pair<absl::string_view, absl::string_view> Roots(absl::string_view one,
                                                      absl::string_view other) {
  while (!one.empty() && !other.empty() && NameOfFile(one) == NameOfFile(other)) {
    for (absl::string_view* path : {&one, &other}) {
      const size_t slash = path->rfind('/');
      *path = slash == absl::string_view::npos ? "" : path->substr(0, slash);
    }
  }
  return {one, other};
}

bool IsBelow(absl::string_view folder, absl::string_view path) {
  return path.size() > folder.size() && path[folder.size()] == '/' &&
         path.substr(0, folder.size()) == folder;
}

// The deepest folder that holds both; "" if that is the root.
absl::string_view CommonFolder(absl::string_view one, absl::string_view other) {
  while (one != other && !IsBelow(one, other)) {
    const size_t slash = one.rfind('/');
    if (slash == absl::string_view::npos) return "";
    one = one.substr(0, slash);
  }
  return one;
}

}  // namespace

Relocation::Relocation(const FileNames& from, const FileNames& to) {
  std::multimap<absl::string_view, absl::string_view> by_name;
  std::vector<absl::string_view> on_both;
  for (const std::string& file : to) {
    if (file.empty() || IsOfLibrary(file)) continue;
    if (from.count(file) > 0) {
      on_both.push_back(file);
    } else {
      by_name.emplace(NameOfFile(file), file);
    }
  }
  // Files that lie at the top of what was checked out have the shortest roots, and so
  // has one of its own path on the other side; namesakes in other folders have longer
  // ones.
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::string& file : from) {
    if (IsOfLibrary(file) || to.count(file) > 0) continue;
    auto [first, last] = by_name.equal_range(NameOfFile(file));
    for (auto namesake = first; namesake != last; ++namesake) {
      const auto [here, there] = Roots(file, namesake->second);
      if (here.size() + there.size() >= least) continue;
      least = here.size() + there.size();
      from_ = std::string(here);
      to_ = std::string(there);
    }
  }
  // What holds both folders was not checked out anew if a file of it is where it was.
  const absl::string_view around = CommonFolder(from_, to_);
  const bool stayed = std::any_of(on_both.begin(), on_both.end(), [&](auto file) {
    return !around.empty() && IsBelow(around, file);
  });
  if (stayed) from_ = to_ = "";
}

std::string Relocation::Of(const std::string& file) const {
  const absl::string_view path = file;
  if (from_ == to_ || !IsBelow(from_, path)) return file;
  return absl::StrCat(to_, path.substr(from_.size()));
}

absl::string_view PathTail(absl::string_view path) {
  for (absl::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = path.rfind(folder);
    if (at != absl::string_view::npos) return path.substr(at + folder.size());
  }
  size_t at = path.rfind('/');
  if (at == absl::string_view::npos || at == 0) return path;
  at = path.rfind('/', at - 1);
  return at == absl::string_view::npos ? path : path.substr(at + 1);
}

std::vector<Match> MatchPlaces(std::vector<Place> a, const std::vector<Place>& b,
                               FileNames files_a, FileNames files_b) {
  for (const Place& place : a) files_a.insert(place.site.file());
  for (const Place& place : b) files_b.insert(place.site.file());
  const Relocation relocation(files_a, files_b);
  for (Place& place : a) place.site.set_file(relocation.Of(place.site.file()));
  Matcher matcher(a, b);
  matcher.Pass([](const Place& p) { return Joined(p.site.file(), p); }, false);
  matcher.Pass(
      [](const Place& p) {
        const absl::string_view file = p.site.file();
        return IsOfLibrary(file) ? Joined(PathTail(file), p) : "";
      },
      false);
  // Many functions are called forward, or main: one elsewhere is the same only if it
  // syncs as often.
  matcher.Pass(
      [](const Place& p) { return p.site.function().empty() ? "" : Joined("", p); },
      /*moved=*/true, /*same_rate=*/true);
  return matcher.Take();
}

}  // namespace lull::compare
