// The Model Context Protocol as its specification has it, whatever a client sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/mcp/bounded.h"
#include "cli/mcp/lines.h"
#include "cli/mcp/server.h"

namespace lull::mcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Server MakeServer() {
  auto echo = [](const Json& arguments) -> absl::StatusOr<std::string> {
    if (arguments.contains("fail")) return absl::NotFoundError("no job 'x'");
    return arguments.dump();
  };
  std::vector<Tool> tools;
  tools.push_back({"echo", "Echo", "says it again", {{"type", "object"}}, echo});
  return Server("1.2", "be careful", std::move(tools));
}

Json Ask(Server& server, const std::string& line) {
  const std::string answer = server.Answer(line);
  return answer.empty() ? Json() : Json::parse(answer);
}

std::string Request(const std::string& method, const std::string& params = "{}") {
  return absl::StrCat(R"({"jsonrpc":"2.0","id":7,"method":")", method, R"(","params":)",
                      params, "}");
}
std::string Modern(const std::string& more = "") {
  return absl::StrCat(
      R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)",
      R"("io.modelcontextprotocol/clientCapabilities":{}})", more, "}");
}

TEST(McpServer, AgreesOnARevisionThatBothKnow) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"2025-11-25", "2025-11-25"}, {"2025-06-18", "2025-06-18"},
      {"2025-03-26", "2025-03-26"}, {"2024-11-05", "2024-11-05"},
      {"1999-01-01", "2025-11-25"}, {"2026-07-28", "2025-11-25"}};
  for (const auto& [asked, agreed] : cases) {
    Server server = MakeServer();
    const Json result = Ask(
        server,
        Request("initialize",
                absl::StrCat(
                    R"({"protocolVersion":")", asked,
                    R"(","capabilities":{},"clientInfo":{"name":"c","version":"0"}})")))
        ["result"];
    EXPECT_EQ(result["protocolVersion"], agreed);
    EXPECT_EQ(result["capabilities"], Json::parse(R"({"tools":{}})"));
    EXPECT_EQ(result["serverInfo"], Json::parse(R"({"name":"lull","version":"1.2"})"));
    EXPECT_EQ(result["instructions"], "be careful");
    EXPECT_FALSE(result.contains("resultType"));
  }
}

TEST(McpServer, TellsWhatItIsWithoutAHandshake) {
  Server server = MakeServer();
  const Json result = Ask(server, Request("server/discover", Modern()))["result"];
  EXPECT_EQ(result["resultType"], "complete");
  EXPECT_EQ(result["supportedVersions"], Json::parse(R"(["2026-07-28"])"));
  EXPECT_EQ(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "lull");
  EXPECT_TRUE(result["ttlMs"].is_number_integer());
  EXPECT_EQ(result["cacheScope"], "private");
}

TEST(McpServer, ListsTools) {
  Server server = MakeServer();
  Json result = Ask(server, Request("tools/list"))["result"];
  ASSERT_EQ(result["tools"].size(), 1u);
  EXPECT_EQ(result["tools"][0]["name"], "echo");
  EXPECT_EQ(result["tools"][0]["inputSchema"]["type"], "object");
  EXPECT_EQ(result["tools"][0]["annotations"]["readOnlyHint"], true);
  EXPECT_FALSE(result.contains("resultType"));
  result = Ask(server, Request("tools/list", Modern()))["result"];
  EXPECT_EQ(result["resultType"], "complete");
  EXPECT_EQ(result["cacheScope"], "private");
}

TEST(McpServer, CallsTools) {
  Server server = MakeServer();
  Json result =
      Ask(server,
          Request("tools/call", R"({"name":"echo","arguments":{"a":1}})"))["result"];
  EXPECT_EQ(result,
            Json::parse(
                R"({"content":[{"type":"text","text":"{\"a\":1}"}],"isError":false})"));
  // What a tool cannot do is told to the model, not to the client.
  result = Ask(server, Request("tools/call",
                               R"({"name":"echo","arguments":{"fail":1}})"))["result"];
  EXPECT_EQ(result["isError"], true);
  EXPECT_EQ(result["content"][0]["text"], "no job 'x'");
  result = Ask(server, Request("tools/call", R"({"name":"echo"})"))["result"];
  EXPECT_EQ(result["content"][0]["text"], "{}");
  result = Ask(server, Request("tools/call", Modern(R"(,"name":"echo")")))["result"];
  EXPECT_EQ(result["resultType"], "complete");
}

TEST(McpServer, KeepsTheIdAsItIs) {
  Server server = MakeServer();
  for (const char* id : {"0", "-3", "\"a\"", "\"\"", "9007199254740993"}) {
    const Json answer = Ask(
        server, absl::StrCat(R"({"jsonrpc":"2.0","id":)", id, R"(,"method":"ping"})"));
    EXPECT_EQ(answer["id"], Json::parse(id));
    EXPECT_EQ(answer["result"], Json::object());
    EXPECT_EQ(answer["jsonrpc"], "2.0");
  }
}

TEST(McpServer, AnswersWhatIsWrongByItsCode) {
  const std::string deep(1'000'000, '[');
  const std::string other = R"({"_meta":{"io.modelcontextprotocol/protocolVersion":)";
  struct Case {
    std::string line;
    int code;
    Json id;
  };
  const std::vector<Case> cases = {
      {"nonsense", -32700, nullptr},
      {"{", -32700, nullptr},
      {R"({"jsonrpc":"2.0","id":7,"method":"ping"} x)", -32700, nullptr},
      {"\xff\xfe", -32700, nullptr},
      {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xc3(\"}", -32700, nullptr},
      {R"({"jsonrpc":"2.0","id":1e999,"method":"ping"})", -32700, nullptr},
      {std::string("{\"a\":\0}", 7), -32700, nullptr},
      {deep, -32700, nullptr},
      {absl::StrCat(R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":)",
                    std::string(200, '['), std::string(200, ']'), "}}"),
       -32700, nullptr},
      {"1", -32600, nullptr},
      {"null", -32600, nullptr},
      {"\"ping\"", -32600, nullptr},
      {"[]", -32600, nullptr},
      {R"([{"jsonrpc":"2.0","id":7,"method":"ping"}])", -32600, nullptr},
      {"{}", -32600, nullptr},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", -32600, nullptr},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", -32600, nullptr},
      {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", -32600, nullptr},
      {R"({"jsonrpc":"2.0","id":7})", -32600, 7},
      {R"({"jsonrpc":"2.0","id":7,"method":3})", -32600, 7},
      {R"({"id":7,"method":"ping"})", -32600, 7},
      {R"({"jsonrpc":2.0,"id":7,"method":"ping"})", -32600, 7},
      {R"({"jsonrpc":"1.0","id":7,"method":"ping"})", -32600, 7},
      {Request("tools/delete"), -32601, 7},
      {Request(""), -32601, 7},
      {Request(std::string(100'000, 'm')), -32601, 7},
      {Request("initialize", Modern()), -32601, 7},
      {Request("ping", "[1]"), -32602, 7},
      {Request("ping", "null"), -32602, 7},
      {Request("initialize"), -32602, 7},
      {Request("initialize", R"({"protocolVersion":3})"), -32602, 7},
      {Request("tools/list", R"({"cursor":"x"})"), -32602, 7},
      {Request("tools/call"), -32602, 7},
      {Request("tools/call", R"({"name":3})"), -32602, 7},
      {Request("tools/call", R"({"name":"shell"})"), -32602, 7},
      {Request("tools/call", R"({"name":"echo","arguments":[]})"), -32602, 7},
      {Request("tools/call", R"({"name":"echo","arguments":null})"), -32602, 7},
      {Request("ping", other + "\"2030-01-01\"}}"), -32022, 7},
      {Request("server/discover", other + "\"2025-11-25\"}}"), -32022, 7},
      {Request("ping", other + "3}}"), -32022, 7}};
  Server server = MakeServer();
  for (const Case& one : cases) {
    const std::string text = server.Answer(one.line);
    SCOPED_TRACE(one.line.substr(0, 200));
    ASSERT_NE(text, "");
    EXPECT_LT(text.size(), 1000u);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const Json answer = Json::parse(text);
    EXPECT_EQ(answer["error"]["code"], one.code);
    EXPECT_TRUE(answer["error"]["message"].is_string());
    EXPECT_EQ(answer["id"], one.id);
    EXPECT_FALSE(answer.contains("result"));
  }
  const Json answer = Ask(server, Request("ping", other + "\"2030-01-01\"}}"));
  EXPECT_EQ(answer["error"]["data"],
            Json::parse(R"({"supported":["2026-07-28"],"requested":"2030-01-01"})"));
}

TEST(McpServer, SaysNothingToNotificationsAndAnswers) {
  Server server = MakeServer();
  for (const char* line :
       {R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
        R"({"jsonrpc":"2.0","method":"notifications/unknown","params":[]})",
        R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}})",
        R"({"method":3})", R"({"jsonrpc":"2.0","id":7,"result":{}})",
        R"({"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}})", "", "  ",
        "\r"}) {
    EXPECT_EQ(server.Answer(line), "") << line;
  }
}

TEST(McpServer, TakesBatchesInTheRevisionThatHasThem) {
  Server server = MakeServer();
  Ask(server, Request("initialize", R"({"protocolVersion":"2025-03-26"})"));
  const Json answers = Ask(
      server,
      absl::StrCat("[", Request("ping"), R"(,{"method":"n"},3,)", Request("x"), "]"));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0]["result"], Json::object());
  EXPECT_EQ(answers[1]["error"]["code"], -32600);
  EXPECT_EQ(answers[2]["error"]["code"], -32601);
  EXPECT_EQ(server.Answer(R"([{"jsonrpc":"2.0","method":"n"}])"), "");
  const std::vector<std::string> many(51, Request("ping"));
  EXPECT_EQ(
      Ask(server, absl::StrCat("[", absl::StrJoin(many, ","), "]"))["error"]["code"],
      -32600);
}

// Cut anywhere, they are the same.
std::vector<std::string> LinesOf(const std::string& text, size_t at_once,
                                 size_t longest) {
  std::vector<std::string> told;
  auto tell = [&told](absl::string_view line, bool too_long) {
    told.push_back(too_long ? "(too long)" : std::string(line));
  };
  Lines lines(longest);
  for (size_t i = 0; i < text.size(); i += at_once) {
    lines.Add(absl::string_view(text).substr(i, at_once), tell);
  }
  lines.End(tell);
  return told;
}

TEST(McpLines, AreTheSameHoweverTheyCome) {
  for (size_t at_once : {1, 2, 3, 5, 100}) {
    EXPECT_THAT(LinesOf("ab\n\nlonger\n12345\nlast", at_once, 5),
                ElementsAre("ab", "", "(too long)", "12345", "last"));
    EXPECT_THAT(LinesOf("123456", at_once, 5), ElementsAre("(too long)"));
    EXPECT_THAT(LinesOf("123456\nab\n", at_once, 5), ElementsAre("(too long)", "ab"));
    EXPECT_THAT(LinesOf("", at_once, 5), ElementsAre());
  }
}

TEST(McpLines, ThatAreTooLongHaveAnAnswer) {
  const Json answer = Json::parse(Server::AnswerToLongLine(5));
  EXPECT_EQ(answer["error"]["code"], -32700);
  EXPECT_TRUE(answer["id"].is_null());
}

Json Numbers(size_t count) {
  Json list = Json::array();
  for (size_t i = 0; i < count; ++i) list.push_back({{"n", i}});
  return list;
}

TEST(McpBounded, LeavesWhatFitsAsItIs) {
  const Json answer = {{"job", "a"}, {"rows", Numbers(3)}};
  EXPECT_EQ(*BoundedText(answer, 1000), answer.dump());
}

TEST(McpBounded, SaysWhichRowsAreNotThere) {
  const Json answer = {
      {"job", "a"}, {"few", Numbers(3)}, {"inner", {{"many", Numbers(500)}}}};
  const std::string text = *BoundedText(answer, 1000);
  EXPECT_LE(text.size(), 1000u);
  const Json cut = Json::parse(text);
  EXPECT_EQ(cut.begin().key(), "cut");
  EXPECT_EQ(cut["few"].size(), 3u);
  const size_t shown = cut["inner"]["many"].size();
  EXPECT_GT(shown, 50u);
  EXPECT_EQ(cut["inner"]["many"][shown - 1]["n"], shown - 1);
  EXPECT_EQ(cut["cut"]["rows"],
            (Json{{"inner.many", {{"shown", shown}, {"of", 500}}}}));
}

TEST(McpBounded, OuterFramesGoBeforeRows) {
  Json answer;
  for (int row = 0; row < 8; ++row) {
    Json stack = Json::array();
    for (int frame = 0; frame < 30; ++frame) {
      stack.push_back({{"function", std::string(40, 'f')}, {"n", frame}});
    }
    answer["gaps"].push_back({{"n", row}, {"stack", stack}, {"native_stack", stack}});
  }
  EXPECT_FALSE(Json::parse(*BoundedText(answer, 100'000)).contains("cut"));
  const Json cut = Json::parse(*BoundedText(answer, 24'000));
  ASSERT_EQ(cut["gaps"].size(), 8u);
  EXPECT_EQ(cut["gaps"][7]["stack"].size(), 30u);
  EXPECT_EQ(cut["gaps"][7]["native_stack"].size(), 5u);
  EXPECT_EQ(cut["gaps"][7]["native_stack"][4]["n"], 4);  // the innermost come first
  EXPECT_EQ(cut["cut"]["rows"],
            Json({{"gaps[].native_stack", {{"shown", 40}, {"of", 240}}}}));
  const Json less = Json::parse(*BoundedText(answer, 5'000));
  ASSERT_EQ(less["gaps"].size(), 8u);
  EXPECT_EQ(less["gaps"][7]["stack"].size(), 5u);
  EXPECT_EQ(less["cut"]["rows"],
            Json({{"gaps[].native_stack", {{"shown", 0}, {"of", 240}}},
                  {"gaps[].stack", {{"shown", 40}, {"of", 240}}}}));
  EXPECT_LT(Json::parse(*BoundedText(answer, 2'000))["gaps"].size(), 8u);
}

TEST(McpBounded, KeepsTheEndOfASeries) {
  const Json answer = {
      {"gpu", {{"spans", Numbers(40)}}},
      {"memory", {{{"points", Numbers(20)}}, {{"points", Numbers(30)}}}}};
  const Json cut = Json::parse(*BoundedText(answer, 10'000));
  EXPECT_EQ(cut["gpu"]["spans"].size(), 10u);
  EXPECT_EQ(cut["gpu"]["spans"][9]["n"], 39);
  EXPECT_EQ(cut["cut"]["rows"]["gpu.spans"]["of"], 40);
  EXPECT_EQ(cut["cut"]["rows"]["memory[].points"]["shown"], 20);
  EXPECT_EQ(cut["cut"]["rows"]["memory[].points"]["of"], 50);
}

TEST(McpBounded, CutsTextsBetweenCharacters) {
  std::string name = "x";
  for (int i = 0; i < 2000; ++i) name += "\xc3\xa9";
  const Json cut = Json::parse(*BoundedText({{"name", name}, {"bad", "\xff"}}, 10'000));
  EXPECT_THAT(cut["name"].get<std::string>(), HasSubstr("\xc3\xa9... (4001 bytes)"));
  EXPECT_EQ(cut["cut"]["texts"], 1);
  EXPECT_EQ(cut["bad"], "\xef\xbf\xbd");
}

TEST(McpBounded, RefusesWhatCannotFit) {
  Json answer = Json::object();
  for (int i = 0; i < 1000; ++i) answer[absl::StrCat("key", i)] = i;
  EXPECT_TRUE(absl::IsOutOfRange(BoundedText(answer, 1000).status()));
}

}  // namespace
}  // namespace lull::mcp
