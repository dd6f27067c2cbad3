// The Model Context Protocol without input and output: a message in, an answer out.
//
// Speaks the revision 2026-07-28, in which every request names its revision, and those
// before it, which begin with a handshake (`initialize`). It only answers: it never
// asks the client for anything.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/render/json.h"

namespace lull::mcp {

struct Tool {
  std::string name;
  std::string title;
  std::string description;
  Json input;  // JSON Schema of the arguments
  // Text for the client, or what is wrong. `arguments` is an object, and no more is
  // known of it.
  std::function<absl::StatusOr<std::string>(const Json& arguments)> call;
};

class Server {
 public:
  Server(std::string version, std::string instructions, std::vector<Tool> tools);

  // What is to be written back, without a newline; "" if nothing is.
  std::string Answer(absl::string_view line);
  // To a line that was not kept.
  static std::string AnswerToLongLine(size_t longest);

 private:
  std::string Batch(const Json& messages);
  // Nothing for notifications, and for answers to what nobody asked.
  std::optional<Json> One(const Json& message);
  // The result, or an error object under the key "error".
  Json Result(const std::string& method, const Json& params);
  Json Initialize(const Json& params);
  Json Discover() const;
  Json List(const Json& params) const;
  Json Call(const Json& params) const;

  const std::string version_;
  const std::string instructions_;
  const std::vector<Tool> tools_;
  // As the handshake found; "" without one.
  std::string revision_;
};

}  // namespace lull::mcp
