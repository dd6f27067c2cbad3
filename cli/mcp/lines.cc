#include "cli/mcp/lines.h"

namespace lull::mcp {

void Lines::Add(absl::string_view bytes, Sink sink) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view part = bytes.substr(0, end);
    if (!too_long_ && part.size() <= longest_ - line_.size()) {
      line_.append(part.data(), part.size());
    } else {
      too_long_ = true;
      std::string().swap(line_);
    }
    if (end == absl::string_view::npos) return;
    Tell(sink);
    bytes.remove_prefix(end + 1);
  }
}

void Lines::End(Sink sink) {
  if (too_long_ || !line_.empty()) Tell(sink);
}

void Lines::Tell(Sink sink) {
  sink(line_, too_long_);
  line_.clear();
  too_long_ = false;
}

}  // namespace lull::mcp
