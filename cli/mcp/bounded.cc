#include "cli/mcp/bounded.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lull::mcp {
namespace {

constexpr size_t kLongestText = 1000;
constexpr size_t kMostOfSeries = 10;
// Of native stacks and of Python's, as far as it has to be.
constexpr std::array<std::pair<ptrdiff_t, ptrdiff_t>, 3> kFrames = {
    {{5, 100}, {5, 10}, {0, 5}}};
constexpr std::array<absl::string_view, 4> kSeries = {"spans", "recorded", "points",
                                                      "over_time"};

std::string OneLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns how many were cut.
size_t CutTexts(Json& json) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    if (text.size() <= kLongestText) return 0;
    size_t end = kLongestText;
    // Not within a character.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text = absl::StrCat(text.substr(0, end), "... (", text.size(), " bytes)");
    return 1;
  }
  size_t cut = 0;
  if (json.is_structured()) {
    for (Json& one : json) cut += CutTexts(one);
  }
  return cut;
}

// What was cut, by places: "gpu.spans", "memory[].points".
struct Cut {
  size_t shown = 0;
  size_t of = 0;
};
using Cuts = std::map<std::string, Cut>;

void CutSeries(Json& json, const std::string& place, Cuts& cuts) {
  if (json.is_array()) {
    for (Json& row : json) CutSeries(row, absl::StrCat(place, "[]"), cuts);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    const std::string inner = place.empty() ? key : absl::StrCat(place, ".", key);
    const bool series = std::find(kSeries.begin(), kSeries.end(), key) != kSeries.end();
    if (series && value.is_array() && value.size() > kMostOfSeries) {
      cuts[inner].of += value.size();
      cuts[inner].shown += kMostOfSeries;
      const auto left_out = static_cast<ptrdiff_t>(value.size() - kMostOfSeries);
      value.erase(value.begin(), value.begin() + left_out);
    }
    CutSeries(value, inner, cuts);
  }
}

// Leaves the innermost frames of stacks, which come first.
void CutStacks(Json& json, const std::string& place, absl::string_view stack,
               ptrdiff_t most, Cuts& cuts) {
  if (json.is_array()) {
    for (Json& row : json) CutStacks(row, absl::StrCat(place, "[]"), stack, most, cuts);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    const std::string inner = place.empty() ? key : absl::StrCat(place, ".", key);
    if (key == stack && value.is_array() && std::ssize(value) > most) {
      cuts[inner].of += value.size();
      cuts[inner].shown += static_cast<size_t>(most);
      value.erase(value.begin() + most, value.end());
    }
    CutStacks(value, inner, stack, most, cuts);
  }
}

// The stacks of one row of a PyTorch job are longer than the row, and rows say more.
void ShortenStacks(Json& answer, size_t room, Cuts& cuts) {
  const Json whole = answer;
  const Cuts before = cuts;
  for (const auto& [native, python] : kFrames) {
    if (OneLine(answer).size() <= room) return;
    answer = whole;
    cuts = before;
    CutStacks(answer, "", "native_stack", native, cuts);
    CutStacks(answer, "", "stack", python, cuts);
  }
}

// Lists that are not within rows, by their places: "gpu.spans".
void FindLists(Json& json, const std::string& place,
               std::map<std::string, Json*>& lists) {
  for (const auto& [key, value] : json.items()) {
    const std::string inner = place.empty() ? key : absl::StrCat(place, ".", key);
    if (value.is_object()) FindLists(value, inner, lists);
    if (value.is_array()) lists[inner] = &value;
  }
}

struct List {
  std::string place;
  Json* rows;
  std::vector<size_t> sizes;  // of each row as text, with its comma
  size_t bytes = 0;           // of those that are left
};

std::vector<List> Lists(Json& answer) {
  std::map<std::string, Json*> found;
  FindLists(answer, "", found);
  std::vector<List> lists;
  for (auto& [place, rows] : found) {
    List list{place, rows, {}};
    for (const Json& row : *rows) {
      list.sizes.push_back(OneLine(row).size() + 1);
      list.bytes += list.sizes.back();
    }
    lists.push_back(std::move(list));
  }
  return lists;
}

// Takes rows until no more than `room` bytes are left.
void CutRows(Json& answer, size_t room, Cuts& cuts) {
  size_t bytes = OneLine(answer).size();
  std::vector<List> lists = Lists(answer);
  while (bytes > room) {
    const auto longest = std::max_element(
        lists.begin(), lists.end(),
        [](const List& a, const List& b) { return a.bytes < b.bytes; });
    if (longest == lists.end() || longest->sizes.empty()) break;
    bytes -= longest->sizes.back();
    longest->bytes -= longest->sizes.back();
    longest->sizes.pop_back();
  }
  for (const List& list : lists) {
    if (list.sizes.size() == list.rows->size()) continue;
    Cut& cut = cuts[list.place];
    cut.of = std::max(cut.of, list.rows->size());
    cut.shown = list.sizes.size();
    list.rows->erase(list.rows->begin() + static_cast<ptrdiff_t>(list.sizes.size()),
                     list.rows->end());
  }
}

}  // namespace

absl::StatusOr<std::string> BoundedText(Json answer, size_t most) {
  Cuts cuts;
  const size_t texts = CutTexts(answer);
  CutSeries(answer, "", cuts);
  // What says that it was cut needs room as well.
  const size_t room = most - most / 10;
  ShortenStacks(answer, room, cuts);
  if (OneLine(answer).size() > room) CutRows(answer, room, cuts);
  Json whole = Json::object();
  if (texts > 0 || !cuts.empty()) {
    Json rows = Json::object();
    for (const auto& [place, cut] : cuts) {
      rows[place] = {{"shown", cut.shown}, {"of", cut.of}};
    }
    whole["cut"] = {{"rows", std::move(rows)}, {"texts", texts}};
  }
  whole.update(answer);
  std::string text = OneLine(whole);
  if (text.size() <= most) return text;
  return absl::OutOfRangeError(
      absl::StrCat("the answer has ", text.size(), " bytes, and ", most,
                   " are the most: ask for fewer rows (top) or a part of the job"));
}

}  // namespace lull::mcp
