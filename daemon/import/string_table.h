// Strings of a trace, each once: a trace repeats few names very often.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace lull::imports {

class StringTable {
 public:
  StringTable() { Intern(""); }
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable&&) = default;

  // 0 is "".
  uint32_t Intern(std::string_view text) {
    auto known = ids_.find(text);
    if (known != ids_.end()) return known->second;
    const auto id = static_cast<uint32_t>(texts_.size());
    bytes_ += text.size() + 64;
    ids_.emplace(texts_.emplace_back(text), id);
    return id;
  }
  const std::string& operator[](uint32_t id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }
  size_t bytes() const { return bytes_; }  // about what it takes

 private:
  std::deque<std::string> texts_;  // stay where they are
  absl::flat_hash_map<std::string_view, uint32_t> ids_;
  size_t bytes_ = 0;
};

}  // namespace lull::imports
