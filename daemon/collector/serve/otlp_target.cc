#include "daemon/collector/serve/otlp_target.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/host_name.h"
#include "daemon/base/pem.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"

namespace lull::collector {
namespace {

constexpr absl::string_view kDefault = "http://127.0.0.1:4317";
constexpr absl::string_view kDefaultPort = "4317";
constexpr absl::string_view kPrefix = "OTEL_EXPORTER_OTLP_";
// Answers are made anew so often at most, see MetricsSource.
constexpr int64_t kLeastIntervalMs = 5'000;
constexpr int64_t kMostMs = 3'600'000;

struct Variable {
  std::string name;
  std::string value;
};

// The form for metrics counts before the general one.
Variable Find(const Environment& environment, absl::string_view what) {
  for (const char* of : {"METRICS_", ""}) {
    Variable found{absl::StrCat(kPrefix, of, what), ""};
    found.value = environment(found.name.c_str());
    if (!found.value.empty()) return found;
  }
  return {};
}

absl::Status Complain(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, " ", what));
}

absl::Status SetEndpoint(absl::string_view name, absl::string_view text,
                         OtlpTarget* target) {
  if (absl::StrContains(text, "@")) {  // a secret, which would be in logs
    return Complain(name, absl::StrCat("names a user: what a receiver wants to know of "
                                       "lulld belongs into ",
                                       kPrefix, "HEADERS"));
  }
  const size_t end = std::min(text.find_first_of("?#"), text.size());
  if (end != text.size()) {
    return Complain(name, absl::StrCat("\"", text.substr(0, end),
                                       "...\" has a query, "
                                       "and OTLP over gRPC has none"));
  }
  const std::string own(text);
  if (absl::ConsumePrefix(&text, "https://")) {
    target->tls = true;
  } else if (!absl::ConsumePrefix(&text, "http://")) {
    return Complain(
        name,
        absl::StrCat("\"", own, "\" is no http://HOST:PORT or https://HOST:PORT"));
  }
  const absl::string_view place = absl::StripSuffix(text, "/");
  if (absl::StrContains(place, "/")) {
    return Complain(name,
                    absl::StrCat("\"", own,
                                 "\" has a path: lulld speaks OTLP over gRPC, which "
                                 "has none, and mostly port ",
                                 kDefaultPort));
  }
  std::optional<TcpAddress> address = ParseTcpAddress(place);
  if (!address) address = ParseTcpAddress(absl::StrCat(place, ":", kDefaultPort));
  if (!address || address->host.empty()) {
    return Complain(name, absl::StrCat("\"", own, "\" has no HOST:PORT"));
  }
  target->address = *std::move(address);
  return absl::OkStatus();
}

// "%20" is a space; what encodes nothing stays as it is.
std::string Decoded(absl::string_view raw) {
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    uint32_t byte = 0;
    if (raw[i] == '%' && i + 2 < raw.size() && absl::ascii_isxdigit(raw[i + 1]) &&
        absl::ascii_isxdigit(raw[i + 2]) &&
        absl::SimpleHexAtoi(raw.substr(i + 1, 2), &byte)) {
      text += static_cast<char>(byte);
      i += 2;
    } else {
      text += raw[i];
    }
  }
  return text;
}

// "a=b,c=d%20e"
absl::StatusOr<metrics::Attributes> ParsePairs(const Variable& variable) {
  metrics::Attributes pairs;
  for (absl::string_view one :
       absl::StrSplit(variable.value, ',', absl::SkipWhitespace())) {
    const size_t at = one.find('=');
    const absl::string_view key = absl::StripAsciiWhitespace(one.substr(0, at));
    if (at == absl::string_view::npos || key.empty()) {
      return Complain(variable.name, "is no list of KEY=VALUE, separated by commas");
    }
    pairs.emplace_back(Decoded(key),
                       Decoded(absl::StripAsciiWhitespace(one.substr(at + 1))));
  }
  return pairs;
}

// gRPC ends the program over metadata that is none.
bool IsKey(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-' || c == '_' ||
           c == '.';
  });
}

bool MayBeMetadata(absl::string_view key, absl::string_view value) {
  auto in_value = [](char c) { return c >= ' ' && c <= '~'; };
  return !absl::EndsWith(key, "-bin") && !absl::StartsWith(key, "grpc-") &&
         IsKey(key) && std::all_of(value.begin(), value.end(), in_value);
}

absl::Status SetHeaders(const Environment& environment, OtlpTarget* target) {
  const Variable variable = Find(environment, "HEADERS");
  LULL_ASSIGN_OR_RETURN(target->headers, ParsePairs(variable));
  for (auto& [key, value] : target->headers) {
    absl::AsciiStrToLower(&key);
    if (!MayBeMetadata(key, value)) {
      // Its value is a secret; what is no key may be one, too.
      return Complain(
          variable.name,
          IsKey(key) ? absl::StrCat("has a header \"", key, "\" that gRPC cannot send")
                     : std::string("has a header that gRPC cannot send: its "
                                   "name is none"));
    }
  }
  return absl::OkStatus();
}

absl::Status SetRoots(const Environment& environment, OtlpTarget* target) {
  if (!target->tls) return absl::OkStatus();
  const Variable variable = Find(environment, "CERTIFICATE");
  if (!variable.value.empty()) {
    LULL_ASSIGN_OR_RETURN(target->roots, ReadPem(variable.value));
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> roots = ReadSystemRoots();
  if (!roots.ok()) {
    return absl::NotFoundError(absl::StrCat(
        roots.status().message(), "; name a PEM file in ", kPrefix, "CERTIFICATE"));
  }
  target->roots = *std::move(roots);
  return absl::OkStatus();
}

absl::Status SetTime(const Variable& variable, int64_t least_ms, absl::Duration* out) {
  if (variable.value.empty()) return absl::OkStatus();
  int64_t ms = 0;
  if (!absl::SimpleAtoi(variable.value, &ms) || ms <= 0 || ms > kMostMs) {
    return Complain(variable.name,
                    absl::StrCat("\"", variable.value,
                                 "\" is no number of milliseconds up to ", kMostMs));
  }
  *out = absl::Milliseconds(std::max(ms, least_ms));
  return absl::OkStatus();
}

absl::Status SetResource(const Environment& environment, const std::string& database,
                         OtlpTarget* target) {
  const Variable more{"OTEL_RESOURCE_ATTRIBUTES",
                      environment("OTEL_RESOURCE_ATTRIBUTES")};
  LULL_ASSIGN_OR_RETURN(const metrics::Attributes given, ParsePairs(more));
  // Each key once: receivers differ in what they make of a second one.
  auto set = [target](const std::string& key, std::string value, bool anyway) {
    auto there = std::find_if(target->resource.begin(), target->resource.end(),
                              [&key](const auto& pair) { return pair.first == key; });
    if (there == target->resource.end()) {
      target->resource.emplace_back(key, std::move(value));
    } else if (anyway) {
      there->second = std::move(value);
    }
  };
  for (const auto& [key, value] : given) set(CleanText(key), CleanText(value), true);
  const std::string service = environment("OTEL_SERVICE_NAME");
  set("service.name", service.empty() ? "lulld" : CleanText(service), !service.empty());
  set("service.version", LULL_VERSION, false);
  set("host.name", HostName(), false);
  // The same after a restart, so that series go on.
  set("service.instance.id", absl::StrCat(HostName(), ":", CleanText(database)), false);
  return absl::OkStatus();
}

}  // namespace

std::string OtlpTarget::url() const {
  return absl::StrCat(tls ? "https://" : "http://", address.text());
}

absl::StatusOr<OtlpTarget> FindOtlpTarget(absl::string_view endpoint,
                                          const Environment& environment,
                                          const std::string& database) {
  OtlpTarget target;
  Variable place{"--otlp", std::string(endpoint)};
  if (endpoint.empty()) {
    place = Find(environment, "ENDPOINT");
    const Variable protocol = Find(environment, "PROTOCOL");
    if (!place.value.empty() && !protocol.value.empty() && protocol.value != "grpc") {
      return Complain(protocol.name,
                      absl::StrCat("is ", protocol.value,
                                   ", and lulld speaks grpc: give "
                                   "the endpoint for that as --otlp http://HOST:",
                                   kDefaultPort));
    }
  }
  LULL_RETURN_IF_ERROR(SetEndpoint(
      place.name, place.value.empty() ? kDefault : absl::string_view(place.value),
      &target));
  LULL_RETURN_IF_ERROR(SetHeaders(environment, &target));
  LULL_RETURN_IF_ERROR(SetRoots(environment, &target));
  LULL_RETURN_IF_ERROR(SetTime(Find(environment, "TIMEOUT"), 1, &target.timeout));
  LULL_RETURN_IF_ERROR(SetTime(
      {"OTEL_METRIC_EXPORT_INTERVAL", environment("OTEL_METRIC_EXPORT_INTERVAL")},
      kLeastIntervalMs, &target.interval));
  LULL_RETURN_IF_ERROR(SetResource(environment, database, &target));
  return target;
}

}  // namespace lull::collector
