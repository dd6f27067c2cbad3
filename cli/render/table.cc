#include "cli/render/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace lull {
namespace {

// Width on the terminal: UTF-8 continuation bytes take no room.
size_t DisplayWidth(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(),
                    [](unsigned char byte) { return (byte & 0xc0) != 0x80; }));
}

}  // namespace

Table::Table(const std::vector<std::string>& columns) {
  for (absl::string_view title : columns) {
    const bool right = absl::ConsumePrefix(&title, ">");
    columns_.push_back({std::string(title), right});
    widths_.push_back(DisplayWidth(title));
  }
}

void Table::AddRow(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    widths_[i] = std::max(widths_[i], DisplayWidth(cells[i]));
  }
  lines_.push_back({std::move(cells), ""});
}

void Table::AddNote(absl::string_view line) {
  lines_.push_back({{}, std::string(line)});
}

std::vector<std::string> Table::Lines() const {
  std::vector<std::string> text;
  auto add_cells = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      std::string padding(widths_[i] - DisplayWidth(cells[i]), ' ');
      const bool right = columns_[i].right;
      absl::StrAppend(&line, "  ", right ? padding : "", cells[i],
                      right ? "" : padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text.push_back(std::move(line));
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  add_cells(titles);
  for (const Line& line : lines_) {
    if (line.cells.empty()) {
      text.push_back(absl::StrCat("      ", line.note));
    } else {
      add_cells(line.cells);
    }
  }
  return text;
}

std::string Table::Text() const {
  return absl::StrCat(absl::StrJoin(Lines(), "\n"), "\n");
}

}  // namespace lull
