#include "cli/html/packed.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

bool IsStack(const std::string& key) { return key == "stack" || key == "native_stack"; }
bool IsSeries(const std::string& key) { return key == "points" || key == "over_time"; }

// [{"a": 1}, {"a": 2}] as {"a": [1, 2]}. Rows of an answer have all the same keys.
Json Columns(const Json& rows) {
  Json columns = Json::object();
  for (const Json& row : rows) {
    for (const auto& [key, value] : row.items()) columns[key].push_back(value);
  }
  return columns;
}

}  // namespace

void Packer::Cut(std::string& text) {
  if (text.size() <= name_bytes_) return;
  const size_t whole = text.size();
  size_t end = name_bytes_;
  // Never inside a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  absl::StrAppend(&text, "... (cut: ", FormatCount(whole), " bytes)");
  ++cut_;
}

void Packer::Pack(Json& json) {
  if (json.is_string()) return Cut(json.get_ref<std::string&>());
  if (json.is_array()) {
    for (Json& element : json) Pack(element);
    return;
  }
  if (!json.is_object()) return;
  for (auto& [key, value] : json.items()) {
    if (IsStack(key) && value.is_array()) {
      Json numbers = Json::array();
      for (Json& frame : value) numbers.push_back(FrameNumber(std::move(frame)));
      value = std::move(numbers);
    } else if (IsSeries(key) && value.is_array()) {
      value = Columns(value);
    } else {
      Pack(value);
    }
  }
}

uint32_t Packer::FrameNumber(Json frame) {
  Pack(frame);
  auto [it, fresh] =
      numbers_.try_emplace(frame.dump(-1, ' ', false, Json::error_handler_t::replace),
                           static_cast<uint32_t>(frames_.size()));
  if (fresh) frames_.push_back(std::move(frame));
  return it->second;
}

std::string ScriptText(const Json& json) {
  return absl::StrReplaceAll(
      json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace),
      {{"<", "\\u003c"}, {">", "\\u003e"}, {"&", "\\u0026"}});
}

}  // namespace lull
