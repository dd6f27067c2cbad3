// JSON made small and harmless for a page: stacks share their frames, lists of points
// are columns, and what a program called itself is cut to a bearable length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "cli/render/json.h"

namespace lull {

class Packer {
 public:
  // Longer strings are cut, and say how long they were.
  explicit Packer(size_t name_bytes) : name_bytes_(name_bytes) {}

  // In place. A list of frames under `stack` or `native_stack` becomes a list of their
  // numbers; one of objects under `points` or `over_time` an object of lists.
  void Pack(Json& json);
  // The number of a frame, {function, file, line, ...}.
  uint32_t FrameNumber(Json frame);

  // All frames, by their numbers.
  const Json& frames() const { return frames_; }
  uint64_t cut() const { return cut_; }

 private:
  void Cut(std::string& text);

  const size_t name_bytes_;
  uint64_t cut_ = 0;
  Json frames_ = Json::array();
  absl::flat_hash_map<std::string, uint32_t> numbers_;
};

// JSON between <script type="application/json"> and </script>: ASCII without <, > and
// &, so that nothing in it ends the element or begins another. Invalid UTF-8 is
// replaced.
std::string ScriptText(const Json& json);

}  // namespace lull
