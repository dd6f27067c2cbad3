// `lull mcp`: answers for agents, by the Model Context Protocol over stdin and stdout.
#include <errno.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/client/install.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/mcp_tools.h"
#include "cli/commands/verbs.h"
#include "cli/mcp/lines.h"
#include "cli/mcp/server.h"

namespace lull {
namespace {

constexpr size_t kLongestLine = 1 << 20;

int Serve(const CollectorFlags& flags) {
  mcp::Server server(kVersion, McpInstructions(),
                     McpTools([&flags] { return Connect(flags); }));
  bool heard = true;
  auto answer = [&](absl::string_view line, bool too_long) {
    std::string text =
        too_long ? mcp::Server::AnswerToLongLine(kLongestLine) : server.Answer(line);
    if (text.empty()) return;
    text += '\n';
    Print(text);
    heard = fflush(stdout) == 0 && heard;
  };
  mcp::Lines lines(kLongestLine);
  std::array<char, 1 << 16> bytes;
  while (heard) {
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return Fail("mcp", absl::StrCat("cannot read stdin: ", strerror(errno)),
                  kExitFailed);
    }
    if (count == 0) break;
    lines.Add({bytes.data(), static_cast<size_t>(count)}, answer);
  }
  lines.End(answer);
  return heard ? 0 : kExitFailed;
}

}  // namespace

void AddMcp(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<CollectorFlags>();
  CLI::App* verb = app.add_subcommand(
      "mcp", "Answer agents: a Model Context Protocol server on stdin and stdout");
  verb->footer(
      "It reads what is recorded and does nothing else: no command is run, no file is "
      "opened\nfor the client. It ends with its input.\n\n"
      "For a client's configuration:\n"
      "  {\"mcpServers\": {\"lull\": {\"command\": \"lull\", \"args\": [\"mcp\"]}}}");
  AddCollectorOptions(verb, flags.get());
  verb->callback([flags, exit_code] { *exit_code = Serve(*flags); });
}

}  // namespace lull
