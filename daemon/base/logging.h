// The log of the daemons: to stderr, which `lulld` and the relay worker may have
// pointed at a file. Quiet by default: warnings and errors. $LULL_LOG sets the
// level (trace, debug, info, warn, err, off). spdlog stays behind this header,
// which keeps its templates out of every other file.
#pragma once

#include <string_view>

namespace lull {

void InitLogging(std::string_view program);

void LogDebug(std::string_view message);
void LogInfo(std::string_view message);
void LogWarning(std::string_view message);
void LogError(std::string_view message);

}  // namespace lull
