#include "cli/mcp/server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace lull::mcp {
namespace {

constexpr char kModern[] = "2026-07-28";
// Newest first; with a handshake.
constexpr std::array<absl::string_view, 4> kLegacy = {"2025-11-25", "2025-06-18",
                                                      "2025-03-26", "2024-11-05"};
// The one revision in which several messages may come as one.
constexpr char kWithBatches[] = "2025-03-26";
constexpr size_t kLargestBatch = 50;
// Nobody's message is so deep; a million brackets are an attack on the parser.
constexpr int kDeepest = 64;

constexpr char kVersionKey[] = "io.modelcontextprotocol/protocolVersion";
constexpr char kServerKey[] = "io.modelcontextprotocol/serverInfo";
constexpr int kCacheMs = 3'600'000;  // the list of tools does not change

enum ErrorCode {
  kParse = -32700,
  kInvalidRequest = -32600,
  kNoSuchMethod = -32601,
  kInvalidParams = -32602,
  kUnsupportedVersion = -32022,
};

Json Error(ErrorCode code, const std::string& message) {
  return {{"error", {{"code", static_cast<int>(code)}, {"message", message}}}};
}

// `outcome`: a result, or an error.
Json Response(const Json& id, Json outcome) {
  Json response = {{"jsonrpc", "2.0"}, {"id", id}};
  const bool failed = outcome.size() == 1 && outcome.contains("error");
  if (failed) {
    response["error"] = std::move(outcome["error"]);
  } else {
    response["result"] = std::move(outcome);
  }
  return response;
}

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* Find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// Discarded where it is no JSON, or too deep.
Json Parse(absl::string_view line) {
  bool too_deep = false;
  Json json = Json::parse(
      line.begin(), line.end(),
      [&too_deep](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kDeepest;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  if (too_deep) return Json(Json::value_t::discarded);
  return json;
}

// The modern revision that a request names; nothing if it names none.
const Json* RevisionOf(const Json& params) {
  const Json* meta = Find(params, "_meta");
  return meta == nullptr ? nullptr : Find(*meta, kVersionKey);
}

Json Unsupported(const Json& requested) {
  Json error = Error(kUnsupportedVersion, "Unsupported protocol version");
  error["error"]["data"] = {{"supported", Json::array({kModern})},
                            {"requested", requested}};
  return error;
}

}  // namespace

Server::Server(std::string version, std::string instructions, std::vector<Tool> tools)
    : version_(std::move(version)),
      instructions_(std::move(instructions)),
      tools_(std::move(tools)) {}

std::string Server::AnswerToLongLine(size_t longest) {
  return Line(
      Response(nullptr, Error(kParse, absl::StrCat("Parse error: a line has more than ",
                                                   longest, " bytes"))));
}

std::string Server::Answer(absl::string_view line) {
  if (absl::StripAsciiWhitespace(line).empty()) return "";
  const Json message = Parse(line);
  if (message.is_discarded()) {
    return Line(
        Response(nullptr, Error(kParse, "Parse error: no JSON in UTF-8, or too deep")));
  }
  if (message.is_array()) return Batch(message);
  std::optional<Json> answer = One(message);
  return answer ? Line(*answer) : "";
}

std::string Server::Batch(const Json& messages) {
  if (revision_ != kWithBatches || messages.empty() ||
      messages.size() > kLargestBatch) {
    return Line(
        Response(nullptr, Error(kInvalidRequest, "Invalid request: no batches")));
  }
  Json answers = Json::array();
  for (const Json& message : messages) {
    std::optional<Json> answer = One(message);
    if (answer) answers.push_back(std::move(*answer));
  }
  return answers.empty() ? "" : Line(answers);
}

std::optional<Json> Server::One(const Json& message) {
  if (!message.is_object()) {
    return Response(nullptr, Error(kInvalidRequest, "Invalid request: no object"));
  }
  const Json* method = Find(message, "method");
  if (method == nullptr && (message.contains("result") || message.contains("error"))) {
    return std::nullopt;
  }
  const Json* id = Find(message, "id");
  if (id == nullptr && method != nullptr) return std::nullopt;  // a notification
  if (id == nullptr || !(id->is_string() || id->is_number_integer())) {
    return Response(
        nullptr,
        Error(kInvalidRequest, "Invalid request: the id is no string or whole number"));
  }
  const Json* protocol = Find(message, "jsonrpc");
  if (protocol == nullptr || *protocol != "2.0") {
    return Response(*id,
                    Error(kInvalidRequest, "Invalid request: jsonrpc is not \"2.0\""));
  }
  if (method == nullptr || !method->is_string()) {
    return Response(*id, Error(kInvalidRequest, "Invalid request: no method"));
  }
  const Json none = Json::object();
  const Json* params = Find(message, "params");
  if (params == nullptr) params = &none;
  if (!params->is_object()) {
    return Response(*id, Error(kInvalidParams, "Invalid params: no object"));
  }
  return Response(*id, Result(method->get<std::string>(), *params));
}

Json Server::Result(const std::string& method, const Json& params) {
  const Json* revision = RevisionOf(params);
  if (revision != nullptr && *revision != kModern) return Unsupported(*revision);
  Json result;
  if (method == "initialize") {
    if (revision != nullptr)
      return Error(kNoSuchMethod, "Method not found: initialize");
    result = Initialize(params);
  } else if (method == "server/discover") {
    result = Discover();
  } else if (method == "ping") {
    result = Json::object();
  } else if (method == "tools/list") {
    result = List(params);
  } else if (method == "tools/call") {
    result = Call(params);
  } else {
    return Error(kNoSuchMethod,
                 absl::StrCat("Method not found: ", method.substr(0, 100)));
  }
  const bool modern = revision != nullptr || method == "server/discover";
  if (!modern || result.contains("error")) return result;
  Json whole = {{"resultType", "complete"}};
  whole.update(result);
  if (method == "tools/list") {
    whole["ttlMs"] = kCacheMs;
    whole["cacheScope"] = "private";
  }
  return whole;
}

Json Server::Initialize(const Json& params) {
  const Json* asked = Find(params, "protocolVersion");
  if (asked == nullptr || !asked->is_string()) {
    return Error(kInvalidParams, "Invalid params: no protocolVersion");
  }
  // One that is not known here: the client is told what is, and may go.
  const auto* found =
      std::find(kLegacy.begin(), kLegacy.end(), asked->get<std::string>());
  revision_ = std::string(found == kLegacy.end() ? kLegacy.front() : *found);
  return {{"protocolVersion", revision_},
          {"capabilities", {{"tools", Json::object()}}},
          {"serverInfo", {{"name", "lull"}, {"version", version_}}},
          {"instructions", instructions_}};
}

Json Server::Discover() const {
  return {{"supportedVersions", Json::array({kModern})},
          {"capabilities", {{"tools", Json::object()}}},
          {"instructions", instructions_},
          {"ttlMs", kCacheMs},
          {"cacheScope", "private"},
          {"_meta", {{kServerKey, {{"name", "lull"}, {"version", version_}}}}}};
}

Json Server::List(const Json& params) const {
  if (Find(params, "cursor") != nullptr) {
    return Error(kInvalidParams, "Invalid params: there is one page, so no cursor");
  }
  Json tools = Json::array();
  for (const Tool& tool : tools_) {
    tools.push_back({{"name", tool.name},
                     {"title", tool.title},
                     {"description", tool.description},
                     {"inputSchema", tool.input},
                     {"annotations",
                      {{"readOnlyHint", true},
                       {"destructiveHint", false},
                       {"idempotentHint", true},
                       {"openWorldHint", false}}}});
  }
  return {{"tools", std::move(tools)}};
}

Json Server::Call(const Json& params) const {
  const Json* name = Find(params, "name");
  if (name == nullptr || !name->is_string()) {
    return Error(kInvalidParams, "Invalid params: no name of a tool");
  }
  const std::string asked = name->get<std::string>();
  const auto tool = std::find_if(tools_.begin(), tools_.end(),
                                 [&](const Tool& one) { return one.name == asked; });
  if (tool == tools_.end()) {
    return Error(kInvalidParams, absl::StrCat("Unknown tool: ", asked.substr(0, 100)));
  }
  const Json none = Json::object();
  const Json* arguments = Find(params, "arguments");
  if (arguments == nullptr) arguments = &none;
  if (!arguments->is_object()) {
    return Error(kInvalidParams, "Invalid params: arguments are no object");
  }
  absl::StatusOr<std::string> text = tool->call(*arguments);
  Json content = {{"type", "text"},
                  {"text", text.ok() ? *text : std::string(text.status().message())}};
  return {{"content", Json::array({std::move(content)})}, {"isError", !text.ok()}};
}

}  // namespace lull::mcp
