#include "daemon/words/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/words/function_name.h"

namespace lull {
namespace {

constexpr size_t kLongPath = 44;
constexpr size_t kShortIdDigits = 8;
constexpr size_t kCompact = 24;

// Three significant digits: 8.12, 81.2, 812.
std::string ThreeDigits(double value) {
  if (value < 9.995) return absl::StrFormat("%.2f", value);
  if (value < 99.95) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.0f", value);
}

absl::string_view LastComponents(absl::string_view path, size_t width) {
  size_t start = path.rfind('/');
  while (start != absl::string_view::npos && start > 0) {
    size_t previous = path.rfind('/', start - 1);
    if (previous == absl::string_view::npos || path.size() - previous > width) break;
    start = previous;
  }
  return start == absl::string_view::npos ? path : path.substr(start + 1);
}

}  // namespace

std::string FormatDuration(uint64_t ns) {
  double value = static_cast<double>(ns);
  if (ns < 1000) return absl::StrCat(ns, " ns");
  if (value < 999.5e3) return absl::StrCat(ThreeDigits(value / 1e3), " us");
  if (value < 999.5e6) return absl::StrCat(ThreeDigits(value / 1e6), " ms");
  if (value < 119.95e9) return absl::StrCat(ThreeDigits(value / 1e9), " s");
  uint64_t minutes = static_cast<uint64_t>(std::llround(value / 60e9));
  if (minutes < 120) {
    uint64_t seconds = static_cast<uint64_t>(std::llround(value / 1e9));
    return absl::StrFormat("%d min %02d s", seconds / 60, seconds % 60);
  }
  return absl::StrFormat("%d h %02d min", minutes / 60, minutes % 60);
}

std::string FormatBytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = std::abs(static_cast<double>(bytes));
  const char* sign = bytes < 0 ? "-" : "";
  if (value < 1024) return absl::StrCat(sign, static_cast<int64_t>(value), " B");
  size_t unit = 0;
  for (value /= 1024; value >= 1023.5 && unit + 1 < kUnits.size(); value /= 1024)
    ++unit;
  return absl::StrCat(sign, ThreeDigits(value), " ", kUnits[unit]);
}

std::string FormatCount(uint64_t count) {
  std::string digits = absl::StrCat(count);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped.push_back(',');
    grouped.push_back(digits[i]);
  }
  return grouped;
}

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string FormatShare(double part, double whole) {
  if (whole <= 0) return "-";
  double percent = Percent(part, whole);
  return percent < 9.995 ? absl::StrFormat("%.2f %%", percent)
                         : absl::StrFormat("%.1f %%", percent);
}

namespace {

// How many bytes at the beginning of `text` a terminal would obey rather than show: a
// control character of ASCII or of Latin-1 (in UTF-8), or a mark that turns the
// direction of writing (U+202A to U+202E, U+2066 to U+2069).
size_t Commands(absl::string_view text) {
  auto byte = [&](size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  if (byte(0) != 0xe2) return 0;
  const bool turns = (byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
                     (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
  return turns ? 3 : 0;
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t commands = Commands(text);
    result.push_back(commands == 0 ? text.front() : '?');
    text.remove_prefix(std::max<size_t>(commands, 1));
  }
  return result;
}

std::string Shortened(absl::string_view text, size_t width) {
  std::string result = Printable(text);
  if (result.size() <= width) return result;
  size_t end = width - 3;
  // Never cut inside a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(result[end]) & 0xc0) == 0x80) --end;
  return absl::StrCat(result.substr(0, end), "...");
}

std::string ShortPath(absl::string_view path) {
  for (absl::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    size_t at = path.rfind(folder);
    if (at != absl::string_view::npos) {
      return Printable(path.substr(at + folder.size()));
    }
  }
  if (path.size() <= kLongPath) return Printable(path);
  return absl::StrCat(".../", Printable(LastComponents(path, kLongPath)));
}

std::string FormatSite(const v1::Site& site, v1::GroupBy group_by) {
  std::string text;
  if (!site.file().empty()) {
    text = ShortPath(site.file());
    if (site.line() > 0 && group_by != v1::GROUP_BY_FUNCTION) {
      absl::StrAppend(&text, ":", site.line());
    }
  }
  if (!site.function().empty()) {
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    Shortened(ShortFunction(site.function()), 60));
  }
  if (site.has_forward_site()) {
    absl::StrAppend(&text, " of ", FormatSite(site.forward_site(), group_by));
  }
  return text.empty() ? "(unknown)" : text;
}

std::string CompactSite(const v1::Site& site, v1::GroupBy group_by) {
  if (group_by == v1::GROUP_BY_FUNCTION && !site.function().empty()) {
    return Shortened(ShortFunction(site.function()), kCompact);
  }
  if (site.file().empty()) return FormatSite(site);
  absl::string_view file = site.file();
  absl::string_view path = LastComponents(file, kCompact);
  if (path.size() > kCompact) path = file.substr(file.rfind('/') + 1);
  if (file.size() <= kCompact) path = file;
  std::string text = Printable(path);
  if (site.line() > 0) absl::StrAppend(&text, ":", site.line());
  return text;
}

std::string FormatFrame(const v1::Frame& frame) {
  std::string text = frame.function().empty()
                         ? "(unknown)"
                         : Shortened(ShortFunction(frame.function()), 100);
  if (!frame.file().empty()) {
    absl::StrAppend(&text, "  ", ShortPath(frame.file()));
    if (frame.line() > 0) absl::StrAppend(&text, ":", frame.line());
  } else if (!frame.module().empty()) {
    absl::StrAppend(&text, "  [", ShortPath(frame.module()), "]");
  }
  return text;
}

std::string ShortId(absl::string_view id) {
  return Printable(id.substr(0, kShortIdDigits));
}

std::string FormatUtc(uint64_t realtime_ns) {
  time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm parts = {};
  gmtime_r(&seconds, &parts);
  return absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                         parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                         parts.tm_sec, realtime_ns / 1'000'000 % 1000);
}

}  // namespace lull
