#include "daemon/base/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <string>

namespace lull {
namespace {

// Made at first use, so that a test or a tool that never called InitLogging gets
// stderr too, and not spdlog's default, which is stdout.
spdlog::logger& Logger(std::string_view program = "lull") {
  static spdlog::logger* logger = [&] {
    auto* made = new spdlog::logger(std::string(program),
                                    std::make_shared<spdlog::sinks::stderr_sink_mt>());
    const char* level = getenv("LULL_LOG");
    made->set_level(level == nullptr ? spdlog::level::warn
                                     : spdlog::level::from_str(level));
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

spdlog::string_view_t View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

void InitLogging(std::string_view program) { Logger(program); }

void LogDebug(std::string_view message) { Logger().debug(View(message)); }
void LogInfo(std::string_view message) { Logger().info(View(message)); }
void LogWarning(std::string_view message) { Logger().warn(View(message)); }
void LogError(std::string_view message) { Logger().error(View(message)); }

}  // namespace lull
