#include "daemon/metrics/exposition.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/text.h"

namespace lull::metrics {
namespace {

constexpr size_t kMostOfALabel = 128;  // bytes, before they are escaped

// A scraper may take a NUL for the end of all.
std::string Cleaned(std::string_view value) {
  std::string clean;
  for (char c : CleanText(value, kMostOfALabel)) {
    const bool control =
        (static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f';
    if (control) {
      clean += "\xEF\xBF\xBD";
    } else {
      clean += c;
    }
  }
  return clean;
}

void AppendEscaped(std::string_view value, std::string* out) {
  for (char c : value) {
    if (c == '\\') {
      *out += "\\\\";
    } else if (c == '"') {
      *out += "\\\"";
    } else if (c == '\n') {
      *out += "\\n";
    } else {
      *out += c;
    }
  }
}

std::string NameOf(const Family& family, const Sample& sample) {
  std::string name = family.name;
  if (family.type == Type::kSummary) name += sample.is_count ? "_count" : "_sum";
  if (const std::string& labels = sample.labels.text(); !labels.empty()) {
    absl::StrAppend(&name, "{", labels, "}");
  }
  return name;
}

// 1500000 millionths are "1.5".
void AppendValue(int64_t value, Unit unit, std::string* out) {
  if (unit == Unit::kOne) {
    absl::StrAppend(out, value);
    return;
  }
  const int digits = unit == Unit::kNanoseconds ? 9 : 6;
  const int64_t one = unit == Unit::kNanoseconds ? 1'000'000'000 : 1'000'000;
  if (value < 0) *out += '-';
  absl::StrAppend(out, std::abs(value / one));
  if (value % one == 0) return;
  absl::StrAppendFormat(out, ".%0*d", digits, std::abs(value % one));
  out->erase(out->find_last_not_of('0') + 1);
}

const char* TypeName(Type type) {
  switch (type) {
    case Type::kCounter:
      return "counter";
    case Type::kGauge:
      return "gauge";
    case Type::kSummary:
      break;
  }
  return "summary";
}

}  // namespace

void Labels::Add(std::string_view name, std::string_view value) {
  pairs_.emplace_back(name, Cleaned(value));
  if (!text_.empty()) text_ += ',';
  text_.append(name);
  text_ += "=\"";
  AppendEscaped(pairs_.back().second, &text_);
  text_ += '"';
}

int64_t Rising::Hold(const std::string& series, int64_t value) {
  const auto it = before_.find(series);
  if (it != before_.end()) value = std::max(value, it->second);
  now_[series] = value;
  return value;
}

void Rising::Next() {
  before_ = std::move(now_);
  now_.clear();
}

void Exposition::Add(const Sample& sample) {
  families_[static_cast<size_t>(sample.metric)].push_back(sample);
  ++series_;
}

void Exposition::Add(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) Add(sample);
}

void Exposition::Hold(Rising* rising) {
  for (std::vector<Sample>& samples : families_) {
    for (Sample& sample : samples) {
      const Family& family = FamilyOf(sample.metric);
      if (family.type == Type::kGauge) continue;
      sample.value = rising->Hold(NameOf(family, sample), sample.value);
    }
  }
}

std::string Exposition::Text() const {
  std::string out;
  for (const std::vector<Sample>& samples : families_) {
    if (samples.empty()) continue;
    const Family& family = FamilyOf(samples.front().metric);
    absl::StrAppend(&out, "# HELP ", family.name, " ", family.help, "\n# TYPE ",
                    family.name, " ", TypeName(family.type), "\n");
    for (const Sample& sample : samples) {
      absl::StrAppend(&out, NameOf(family, sample), " ");
      AppendValue(sample.value, sample.is_count ? Unit::kOne : family.unit, &out);
      out += '\n';
    }
  }
  return out;
}

}  // namespace lull::metrics
