#include "daemon/relay/read/python_codes.h"

#include <utility>

#include "daemon/base/text.h"
#include "daemon/relay/symbols/line_table.h"

namespace lull::relay {
namespace {

// Limit for one code object; no honest one has so many instructions that make a call.
constexpr size_t kMostLines = 4096;

}  // namespace

PythonCodes::Code::Code(RawCode raw)
    : function_(CleanText(raw.name)),
      file_(CleanText(raw.filename)),
      line_table_(std::move(raw.linetable)),
      first_line_(raw.first_line),
      python_minor_(raw.python_minor) {}

int32_t PythonCodes::Code::Line(int32_t lasti) {
  if (lines_.size() >= kMostLines) lines_.clear();
  auto [line, fresh] = lines_.try_emplace(lasti, 0);
  if (fresh) {
    line->second = LineOfInstruction(python_minor_, first_line_, line_table_, lasti);
  }
  return line->second;
}

PythonCodes::Code* PythonCodes::Find(const SegmentReader& segment, abi::Ref ref) {
  auto known = codes_.find(ref);
  if (known != codes_.end()) return &known->second;
  std::optional<RawCode> raw = segment.Code(ref);
  if (!raw) return nullptr;
  if (bytes_ > kMostBytes) {
    codes_.clear();
    bytes_ = 0;
  }
  Code code(*std::move(raw));
  bytes_ += sizeof(code) + code.function_.size() + code.file_.size() +
            (code.line_table_ ? code.line_table_->size() : 0);
  return &codes_.insert_or_assign(ref, std::move(code)).first->second;
}

}  // namespace lull::relay
