// The verbs that show jobs, as tools of the Model Context Protocol.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/collector_client.h"
#include "cli/mcp/server.h"

namespace lull {

// How to treat the answers, for the model that reads them.
std::string McpInstructions();

// `connect` is called for each answer. Tools read what is recorded, and do nothing
// else.
using Connector = std::function<absl::StatusOr<std::unique_ptr<CollectorClient>>()>;
std::vector<mcp::Tool> McpTools(const Connector& connect);

}  // namespace lull
