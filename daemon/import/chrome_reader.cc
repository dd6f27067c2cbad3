#include "daemon/import/chrome_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#define RAPIDJSON_HAS_STDSTRING 1
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "daemon/import/chrome_event.h"
#include "daemon/import/chrome_rows.h"
#include "daemon/import/json_stream.h"
#include "daemon/import/window_stream.h"

namespace lull::imports {
namespace {

constexpr size_t kMetadataBytes = 1 << 20;
constexpr uint64_t kLatestBase = uint64_t{1} << 61;
constexpr unsigned kEventFlags = rapidjson::kParseStopWhenDoneFlag |
                                 rapidjson::kParseNumbersAsStringsFlag |
                                 rapidjson::kParseNanAndInfFlag;

// Takes note of nothing.
struct Ignore : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Ignore> {
  bool StartObject() { return ++depth <= ChromeEventHandler::kDeepest; }
  bool EndObject(rapidjson::SizeType) { return --depth >= 0; }
  bool StartArray() { return ++depth <= ChromeEventHandler::kDeepest; }
  bool EndArray(rapidjson::SizeType) { return --depth >= 0; }
  int depth = 0;
};

// The one string of a key.
struct KeyText : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, KeyText> {
  bool Default() { return false; }
  bool String(const char* s, rapidjson::SizeType length, bool) {
    text.assign(s, length);
    return true;
  }
  std::string text;
};

class ChromeReader {
 public:
  ChromeReader(Input& input, const ReadLimits& limits)
      : input_(input), stream_(input), limits_(limits), rows_(trace_) {}

  absl::StatusOr<Trace> Read() {
    absl::Status read = Top();
    // What the file says of itself is the better reason.
    if (!input_.status().ok()) return input_.status();
    LULL_RETURN_IF_ERROR(read);
    LULL_RETURN_IF_ERROR(rows_.Finish());
    return std::move(trace_);
  }

 private:
  absl::Status Top() {
    const char first = NextToken();
    if (first == '[') {
      LULL_RETURN_IF_ERROR(Events());
      return End();
    }
    if (first != '{') {
      return absl::InvalidArgumentError("no trace: neither a JSON object nor an array");
    }
    stream_.Take();
    bool events = false;
    if (NextToken() == '}') return NoEvents();
    while (true) {
      LULL_RETURN_IF_ERROR(Member(&events));
      const char next = NextToken();
      stream_.Take();
      if (next == '}') break;
      if (next != ',') return Damaged("a comma or the end of the object is missing");
    }
    if (!events) return NoEvents();
    return End();
  }

  static absl::Status NoEvents() {
    return absl::InvalidArgumentError("no trace: it has no \"traceEvents\"");
  }

  absl::Status End() {
    if (NextToken() == '\0' && input_.Peek() < 0) return absl::OkStatus();
    return Damaged("something follows the end of the trace");
  }

  absl::Status Member(bool* events) {
    KeyText key;
    if (NextToken() != '"') return Damaged("the name of a field is missing");
    LULL_RETURN_IF_ERROR(Parse<kEventFlags>(key, kMetadataBytes));
    if (NextToken() != ':') return Damaged("a colon is missing");
    stream_.Take();
    if (key.text == "traceEvents" && NextToken() == '[') {
      if (std::exchange(*events, true))
        return Damaged("\"traceEvents\" is there twice");
      return Events();
    }
    if (IsWanted(key.text)) return Metadata(key.text);
    Ignore ignore;
    NextToken();
    return Parse<kEventFlags>(ignore, limits_.value_bytes);
  }

  absl::Status Events() {
    stream_.Take();  // [
    ChromeEventHandler handler(event_);
    if (NextToken() == ']') {
      stream_.Take();
      return absl::OkStatus();
    }
    while (true) {
      if (NextToken() != '{') return Damaged("an event is missing");
      if (!ParseWithinWindow(handler)) {
        handler.Reset();
        LULL_RETURN_IF_ERROR(Parse<kEventFlags>(handler, limits_.value_bytes));
      }
      rows_.Add(event_);
      LULL_RETURN_IF_ERROR(CheckLimits(trace_.records.size(), trace_.bytes(), limits_));
      const char next = NextToken();
      stream_.Take();
      if (next == ']') return absl::OkStatus();
      if (next != ',') return Damaged("a comma or the end of the events is missing");
      // Some writers leave a comma behind the last one.
      if (NextToken() != ']') continue;
      stream_.Take();
      return absl::OkStatus();
    }
  }

  // An event that is here as a whole and has nothing that only JsonStream takes: twice
  // as fast as byte by byte through it. Otherwise false, and nothing is taken. (Without
  // RAPIDJSON_SSE2: in version 1.1 it lets some of the bytes 0x1a to 0x1f pass.)
  bool ParseWithinWindow(ChromeEventHandler& handler) {
    const std::string_view window = input_.Window();
    if (window.size() > limits_.value_bytes) return false;
    handler.Reset();
    WindowStream text(window);
    if (reader_.Parse<kEventFlags>(text, handler).IsError()) return false;
    input_.Skip(text.Tell());
    return true;
  }

  static bool IsWanted(std::string_view key) {
    return key == "deviceProperties" || key == "computeProperties" ||
           key == "distributedInfo" || key == "baseTimeNanoseconds";
  }

  absl::Status Metadata(const std::string& key) {
    NextToken();
    stream_.Limit(kMetadataBytes);
    rapidjson::Document value;
    value.ParseStream<rapidjson::kParseStopWhenDoneFlag |
                      rapidjson::kParseIterativeFlag>(stream_);
    if (value.HasParseError()) {
      return Damaged(rapidjson::GetParseError_En(value.GetParseError()));
    }
    stream_.Limit(SIZE_MAX / 2);
    if (key == "baseTimeNanoseconds" && value.IsUint64()) {
      if (value.GetUint64() > kLatestBase) return Damaged("a date that cannot be");
      trace_.base_ns = value.GetUint64();
    } else if (key == "distributedInfo" && value.IsObject()) {
      // const: Clang takes the comparison of RapidJSON's other iterators for ambiguous.
      const rapidjson::Value& info = value;
      auto rank = info.FindMember("rank");
      if (rank != info.MemberEnd() && rank->value.IsInt() &&
          rank->value.GetInt() >= 0) {
        trace_.rank = rank->value.GetInt();
      }
      auto world = info.FindMember("world_size");
      if (world != info.MemberEnd() && world->value.IsInt() &&
          world->value.GetInt() > 0) {
        trace_.world_size = world->value.GetInt();
      }
    } else if (value.IsArray()) {
      for (const auto& device : value.GetArray()) AddDevice(device);
    }
    return absl::OkStatus();
  }

  static uint64_t Number(const rapidjson::Value& object, const char* key) {
    auto member = object.FindMember(key);
    return member != object.MemberEnd() && member->value.IsUint64()
               ? member->value.GetUint64()
               : 0;
  }

  void AddDevice(const rapidjson::Value& from) {
    if (!from.IsObject() || trace_.devices.size() >= kMaxWireDevices) return;
    auto small = [&](const char* key) {
      return static_cast<uint32_t>(std::min<uint64_t>(Number(from, key), UINT32_MAX));
    };
    v1::GpuDeviceDef& device = trace_.devices.emplace_back();
    device.set_device(small("id"));
    auto name = from.FindMember("name");
    if (name != from.MemberEnd() && name->value.IsString()) {
      device.set_name(CleanText(name->value.GetString()));
    }
    device.set_multiprocessors(small("numSms"));
    device.set_max_threads_per_multiprocessor(small("maxThreadsPerMultiprocessor"));
    device.set_max_registers_per_multiprocessor(small("regsPerMultiprocessor"));
    device.set_max_shared_bytes_per_multiprocessor(
        std::max(small("sharedMemPerMultiprocessor"),
                 small("maxSharedMemoryPerMultiProcessor")));
    device.set_warp_size(small("warpSize"));
    // In traces of ROCm it is the number of an architecture of AMD's.
    if (!absl::StartsWith(device.name(), "AMD")) {
      device.set_compute_capability(10 * std::min(small("computeMajor"), 1000u) +
                                    std::min(small("computeMinor"), 9u));
    }
    device.set_total_bytes(Number(from, "totalGlobalMem"));
  }

  template <unsigned kFlags, typename Handler>
  absl::Status Parse(Handler& handler, size_t limit) {
    stream_.Limit(limit);
    const rapidjson::ParseResult result = reader_.Parse<kFlags>(stream_, handler);
    if (result.IsError()) {
      if (stream_.at_limit())
        return Damaged(absl::StrCat("more than ", limit, " bytes"));
      return Damaged(rapidjson::GetParseError_En(result.Code()));
    }
    stream_.Limit(SIZE_MAX / 2);
    return absl::OkStatus();
  }

  // The first byte that is no space; it is not taken.
  char NextToken() {
    while (stream_.Peek() == ' ') stream_.Take();
    return stream_.Peek();
  }

  absl::Status Damaged(absl::string_view what) const {
    if (input_.Peek() < 0) {
      return absl::DataLossError(
          absl::StrCat("it is cut short: it ends within the trace, at byte ",
                       input_.offset(), " of its text"));
    }
    return absl::DataLossError(absl::StrCat("it is damaged at byte ", input_.offset(),
                                            " of its text: ", what));
  }

  Input& input_;
  JsonStream stream_;
  const ReadLimits limits_;
  rapidjson::Reader reader_;
  ChromeEvent event_;
  Trace trace_;
  ChromeRows rows_;
};

}  // namespace

absl::Status CheckLimits(size_t records, size_t bytes, const ReadLimits& limits) {
  if (records <= limits.records && bytes <= limits.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("more than an import takes: ", records, " events are kept so far, ",
                   limits.records, " at most; with their names they take ", bytes >> 20,
                   " MiB, ", limits.bytes >> 20, " at most"));
}

absl::StatusOr<Trace> ReadChromeTrace(Input& input, const ReadLimits& limits) {
  return ChromeReader(input, limits).Read();
}

}  // namespace lull::imports
