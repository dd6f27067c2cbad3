// What the source text of two lines says of whether they are one line of a program that
// was edited in between. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull::compare {

// A line as it is compared: its words as checksums, so that a baseline may be kept
// where source text must not be, and all else but blanks as it is; parted by blanks. ""
// if there is no word in it. A comment of Python is no part of it.
std::string FingerprintOf(absl::string_view line, bool python);

struct LineText {
  std::string own;  // fingerprint; "": the text is not known
  // Of the nearest lines above and below it that have two words or more: "else:" is
  // beside many lines. "": none of those that are known.
  std::string before = {};
  std::string after = {};

  bool known() const { return !own.empty(); }
};

LineText TextOf(const v1::SourceDef& source);

// Whether one may have become the other: the text of one of them is not known, or is
// the same, or it was edited where it stands. That is so if more than half of their
// words are the same, and so is the line above them or the line below.
bool MayBeOneLine(const LineText& a, const LineText& b);

using LineTexts = std::map<std::pair<std::string, int32_t>, LineText>;  // by file, line

}  // namespace lull::compare
