// Numbers and names the way people read them: "8.12 ms", "1,204", "3.1 GiB".
//
// Pure functions; the JSON renderer uses none of them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "query.pb.h"

namespace lull {

std::string FormatDuration(
    uint64_t ns);  // three digits: "412 ns", "8.12 ms", "2 h 05 min"
std::string FormatBytes(int64_t bytes);              // "512 B", "1.50 MiB", "-3.0 KiB"
std::string FormatCount(uint64_t count);             // "1,204,118"
std::string FormatShare(double part, double whole);  // "19.2 %", "-" of nothing

// Counts and nanoseconds in a calculation with fractions.
inline double D(uint64_t value) { return static_cast<double>(value); }

// Part of `whole` in percent; 0 when there is no whole.
double Percent(double part, double whole);

// "train.py:42 step". Parts that are unknown are left out; a site of which
// nothing is known reads "(unknown)". Long paths keep their last components.
std::string FormatSite(const v1::Site& site, v1::GroupBy group_by = v1::GROUP_BY_LINE);
std::string FormatFrame(const v1::Frame& frame);

// The same in a few characters, for two of them on one line: "train.py:42", or the
// function alone when rows are grouped by it.
std::string CompactSite(const v1::Site& site, v1::GroupBy group_by);

// Leaves out what a reader does not need: the way to site-packages, and all but
// the last components of a long path.
std::string ShortPath(absl::string_view path);

// Characters that would steer the terminal become '?': names and command lines
// come from the job and may hold anything.
std::string Printable(absl::string_view text);

// At most `width` bytes of Printable(text), "..." where it was cut.
std::string Shortened(absl::string_view text, size_t width);

// The eight digits by which people name a job.
std::string ShortId(absl::string_view id);

// "2024-05-01T12:30:00.250Z"
std::string FormatUtc(uint64_t realtime_ns);

}  // namespace lull
