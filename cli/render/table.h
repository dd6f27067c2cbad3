// A table of text with aligned columns, as the human reports print it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull {

// Example:
//   Table table({">calls", "site"});        // the first aligned to the right
//   table.AddRow({"12", "train.py:42 step"});
//   table.AddNote("step  train.py:42");     // a line of its own under the row
//   std::string text = table.Text();
class Table {
 public:
  explicit Table(const std::vector<std::string>& columns);

  // One cell per column.
  void AddRow(std::vector<std::string> cells);
  void AddNote(absl::string_view line);

  // The title line, then rows and notes, every line indented by two and without
  // trailing spaces.
  std::string Text() const;
  std::vector<std::string> Lines() const;  // the same, without line ends

 private:
  struct Column {
    std::string title;
    bool right;
  };
  struct Line {
    std::vector<std::string> cells;  // empty: a note
    std::string note;
  };

  std::vector<Column> columns_;
  std::vector<size_t> widths_;
  std::vector<Line> lines_;
};

}  // namespace lull
