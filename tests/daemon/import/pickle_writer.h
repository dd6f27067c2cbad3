// Pickles for tests: parts are strings of opcodes, which are put together by +.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lull::imports::pickled {

inline std::string Number(int64_t value) {
  if (value >= 0 && value < 256) return {'K', static_cast<char>(value)};
  std::string bytes("\x8a\x08", 2);
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
  return bytes;
}
// Of less than 256 bytes.
inline std::string Text(const std::string& text) {
  return std::string({'\x8c', static_cast<char>(text.size())}) + text;
}
inline std::string List(const std::vector<std::string>& items) {
  std::string bytes = "](";
  for (const std::string& item : items) bytes += item;
  return bytes + "e";
}
inline std::string Dict(
    const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string bytes = "}(";
  for (const auto& [key, value] : fields) bytes += Text(key) + value;
  return bytes + "u";
}
inline std::string Frame(const std::string& file, int line, const std::string& name) {
  return Dict({{"filename", Text(file)}, {"line", Number(line)}, {"name", Text(name)}});
}
inline std::string Entry(const std::string& action, int64_t address, int64_t bytes,
                         int64_t time_us, const std::string& frames = "]") {
  return Dict({{"action", Text(action)},
               {"addr", Number(address)},
               {"size", Number(bytes)},
               {"stream", Number(0)},
               {"time_us", Number(time_us)},
               {"frames", frames}});
}
inline std::string Block(int64_t address, int64_t size, const std::string& state,
                         int64_t asked, const std::string& frames = "]") {
  return Dict({{"address", Number(address)},
               {"size", Number(size)},
               {"requested_size", Number(asked)},
               {"state", Text(state)},
               {"frames", frames}});
}
inline std::string Segment(int64_t address, const std::vector<std::string>& blocks) {
  return Dict(
      {{"device", Number(0)}, {"address", Number(address)}, {"blocks", List(blocks)}});
}
inline std::string Snapshot(const std::vector<std::string>& segments,
                            const std::vector<std::string>& entries) {
  return Dict({{"segments", List(segments)}, {"device_traces", List({List(entries)})}});
}
inline std::string Whole(const std::string& value) { return "\x80\x04" + value + "."; }

}  // namespace lull::imports::pickled
