#include "daemon/metrics/otlp.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace lull::metrics {
namespace {

constexpr const char* kBytes = "_bytes";

void AddAttributes(const Attributes& from,
                   google::protobuf::RepeatedPtrField<otlp::KeyValue>* to) {
  for (const auto& [key, value] : from) {
    otlp::KeyValue* attribute = to->Add();
    attribute->set_key(key);
    attribute->mutable_value()->set_string_value(value);
  }
}

double InBaseUnit(int64_t value, Unit unit) {
  switch (unit) {
    case Unit::kNanoseconds:
      return static_cast<double>(value) / 1e9;
    case Unit::kMillionths:
      return static_cast<double>(value) / 1e6;
    case Unit::kOne:
      break;
  }
  return static_cast<double>(value);
}

class Requests {
 public:
  Requests(const Attributes& resource, uint64_t time_ns)
      : resource_(resource), time_ns_(time_ns) {}

  void KnowStart(const std::string& run, int64_t start_ns) {
    if (start_ns > 0 && static_cast<uint64_t>(start_ns) <= time_ns_) {
      starts_[run] = static_cast<uint64_t>(start_ns);
    }
  }

  void Add(const Family& family, const std::vector<Sample>& samples) {
    metric_ = nullptr;  // a request has each once
    for (const Sample& sample : samples) {
      // A summary's count belongs to the point of its sum.
      const bool is_full = points_ == kPointsOfARequest && !sample.is_count;
      if (metric_ == nullptr || is_full) Begin(family);
      if (family.type == Type::kSummary) {
        AddToSummary(family, sample);
      } else {
        AddNumber(family, sample);
      }
    }
  }

  std::vector<otlp::ExportMetricsServiceRequest> Take() { return std::move(requests_); }

 private:
  void Begin(const Family& family) {
    if (requests_.empty() || points_ == kPointsOfARequest) {
      otlp::ResourceMetrics* of_us = requests_.emplace_back().add_resource_metrics();
      AddAttributes(resource_, of_us->mutable_resource()->mutable_attributes());
      of_us->add_scope_metrics()->mutable_scope()->set_name("lull");
      points_ = 0;
    }
    metric_ = requests_.back()
                  .mutable_resource_metrics(0)
                  ->mutable_scope_metrics(0)
                  ->add_metrics();
    metric_->set_name(OtlpName(family));
    metric_->set_description(family.help);
    metric_->set_unit(OtlpUnit(family));
  }

  void AddNumber(const Family& family, const Sample& sample) {
    otlp::NumberDataPoint* point = nullptr;
    if (family.type == Type::kCounter) {
      otlp::Sum* sum = metric_->mutable_sum();
      sum->set_aggregation_temporality(otlp::AGGREGATION_TEMPORALITY_CUMULATIVE);
      sum->set_is_monotonic(true);
      point = sum->add_data_points();
      point->set_start_time_unix_nano(StartOf(sample));
    } else {
      point = metric_->mutable_gauge()->add_data_points();
    }
    if (family.unit == Unit::kOne) {
      point->set_as_int(sample.value);
    } else {
      point->set_as_double(InBaseUnit(sample.value, family.unit));
    }
    Finish(sample, point);
  }

  // Its sum and its count are two samples, one after the other.
  void AddToSummary(const Family& family, const Sample& sample) {
    auto* points = metric_->mutable_summary()->mutable_data_points();
    if (sample.is_count && !points->empty()) {
      points->rbegin()->set_count(static_cast<uint64_t>(sample.value));
      return;
    }
    otlp::SummaryDataPoint* point = points->Add();
    point->set_start_time_unix_nano(StartOf(sample));
    point->set_sum(InBaseUnit(sample.value, family.unit));
    Finish(sample, point);
  }

  template <typename Point>
  void Finish(const Sample& sample, Point* point) {
    point->set_time_unix_nano(time_ns_);
    AddAttributes(sample.labels.pairs(), point->mutable_attributes());
    ++points_;
  }

  uint64_t StartOf(const Sample& sample) const {
    for (const auto& [name, value] : sample.labels.pairs()) {
      if (name != "run") continue;
      const auto start = starts_.find(value);
      return start == starts_.end() ? 0 : start->second;
    }
    return 0;
  }

  const Attributes& resource_;
  const uint64_t time_ns_;
  std::map<std::string, uint64_t> starts_;  // by run
  std::vector<otlp::ExportMetricsServiceRequest> requests_;
  otlp::Metric* metric_ = nullptr;
  size_t points_ = 0;  // of the last request
};

}  // namespace

std::string OtlpName(const Family& family) {
  absl::string_view name = absl::StripSuffix(family.name, "_total");
  name = absl::StripSuffix(name, kBytes);
  if (family.unit == Unit::kNanoseconds) name = absl::StripSuffix(name, "_seconds");
  return absl::StrReplaceAll(name, {{"_", "."}});
}

const char* OtlpUnit(const Family& family) {
  switch (family.unit) {
    case Unit::kNanoseconds:
      return "s";
    case Unit::kMillionths:
      return "1";
    case Unit::kOne:
      break;
  }
  const absl::string_view name = absl::StripSuffix(family.name, "_total");
  return absl::EndsWith(name, kBytes) ? "By" : "";
}

std::vector<otlp::ExportMetricsServiceRequest> OtlpRequests(const Exposition& samples,
                                                            const Attributes& resource,
                                                            uint64_t time_ns) {
  Requests requests(resource, time_ns);
  for (const Sample& start : samples.Of(Metric::kRunStart)) {
    requests.KnowStart(start.labels.pairs().front().second, start.value);
  }
  for (size_t i = 0; i < kMetrics; ++i) {
    const auto metric = static_cast<Metric>(i);
    requests.Add(FamilyOf(metric), samples.Of(metric));
  }
  return requests.Take();
}

}  // namespace lull::metrics
