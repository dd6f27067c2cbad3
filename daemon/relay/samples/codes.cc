#include "daemon/relay/samples/codes.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "daemon/base/text.h"
#include "daemon/relay/samples/rates.h"
#include "daemon/relay/symbols/line_table.h"

namespace lull::relay {
namespace {

// As the shim has them: longer texts are cut, a longer line table is left out.
constexpr size_t kMostFilename = 4096;
constexpr size_t kMostName = 1024;
constexpr size_t kMostLineTable = 32 * 1024;

constexpr size_t kComparedBytes = 128;  // bytes of each text
constexpr uint64_t kYoungNs = 1'000'000'000;
constexpr uint64_t kHeadNs = 100'000'000;
constexpr uint64_t kTextsNs = 10'000'000'000;

void AppendUtf8(uint32_t c, std::string* out) {
  auto tail = [out](uint32_t bits) {
    out->push_back(static_cast<char>(0x80 | (bits & 0x3f)));
  };
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xc0 | c >> 6));
    tail(c);
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | c >> 12));
    tail(c >> 6);
    tail(c);
  } else {
    out->push_back(static_cast<char>(0xf0 | (c >> 18 & 7)));
    tail(c >> 12);
    tail(c >> 6);
    tail(c);
  }
}

// `kind`: bytes of a character. Surrogates stay for CleanText() to replace.
std::string ToUtf8(const std::string& raw, size_t kind) {
  std::string out;
  for (size_t i = 0; i + kind <= raw.size(); i += kind) {
    uint32_t c = kind == 1   ? static_cast<unsigned char>(raw[i])
                 : kind == 2 ? LoadAt<uint16_t>(raw.data(), static_cast<int>(i))
                             : LoadAt<uint32_t>(raw.data(), static_cast<int>(i));
    AppendUtf8(c, &out);
  }
  return out;
}

}  // namespace

CodeBook::Head CodeBook::HeadIn(const char* bytes) const {
  const abi::PythonLayout& at = layout_.at;
  const int low = layout_.code.low;
  return {LoadAt<uint64_t>(bytes, at.object_type - low),
          LoadAt<uint64_t>(bytes, at.code_filename - low),
          LoadAt<uint64_t>(bytes, at.code_name - low),
          LoadAt<uint64_t>(bytes, at.code_line_table - low),
          LoadAt<int32_t>(bytes, at.code_first_line - low)};
}

bool CodeBook::IsYoung(const Slot& slot, uint64_t now_ns) {
  return slot.fickle || now_ns - slot.since_ns < kYoungNs;
}

void CodeBook::Trim() {
  if (codes_.size() <= kMostCodes && code_bytes_ <= kMostCodeBytes) return;
  slots_.clear();
  codes_.resize(1);
  code_bytes_ = 0;
}

size_t CodeBook::Expect(uint64_t address, uint64_t now_ns, std::vector<Piece>* pieces) {
  auto found = slots_.find(address);
  const Slot* slot = found == slots_.end() ? nullptr : &found->second;
  const bool young = slot == nullptr || IsYoung(*slot, now_ns);
  if (!young && now_ns - slot->head_ns < kHeadNs) return 0;
  pieces->push_back(
      {address + static_cast<uint64_t>(layout_.code.low), layout_.code.size});
  if (slot == nullptr || (!young && now_ns - slot->texts_ns < kTextsNs)) return 1;
  pieces->insert(pieces->end(), slot->checks.begin(), slot->checks.end());
  return 1 + slot->checks.size();
}

CodeBook::Found CodeBook::Resolve(uint64_t address, size_t pieces, const char* bytes,
                                  uint64_t now_ns, TargetMemory* memory) {
  auto found = slots_.find(address);
  if (pieces == 0) {
    if (found == slots_.end()) return {};
    return {found->second.code, false};
  }
  const Head head = HeadIn(bytes);
  if (head.type != layout_.code_type) return {};
  bool fickle = false;
  if (found != slots_.end()) {
    Slot& slot = found->second;
    bool same = slot.head == head;
    if (same && pieces == 1 + slot.checks.size()) {
      for (const Expected& expected : slot.expected) {
        same = same && memcmp(bytes + expected.offset, expected.bytes.data(),
                              expected.bytes.size()) == 0;
      }
      slot.texts_ns = now_ns;
    }
    if (same) {
      slot.head_ns = now_ns;
      return {slot.code, slot.fickle};
    }
    fickle = true;
  }
  Slot slot;
  if (!ReadNew(address, head, memory, &slot)) return {};
  slot.since_ns = slot.head_ns = slot.texts_ns = now_ns;
  slot.fickle = fickle;
  const uint32_t code = slot.code;
  slots_[address] = std::move(slot);
  return {code, true};
}

void CodeBook::AddCheck(uint64_t first, uint64_t size_at, uint64_t size,
                        uint64_t data_at, const std::string& data, Slot* slot) const {
  size_t offset = layout_.code.size;
  for (const Piece& piece : slot->checks) offset += piece.size;
  const size_t checked = std::min(data.size(), kComparedBytes);
  const uint64_t end = std::max<uint64_t>(size_at + sizeof(size), data_at + checked);
  slot->checks.push_back({first, static_cast<uint32_t>(end - first)});
  slot->expected.push_back(
      {offset + (size_at - first),
       std::string(reinterpret_cast<const char*>(&size), sizeof(size))});
  slot->expected.push_back({offset + (data_at - first), data.substr(0, checked)});
}

bool CodeBook::ReadText(uint64_t object, size_t limit, TargetMemory* memory,
                        std::string* text, Slot* slot) const {
  const abi::PythonLayout& at = layout_.at;
  if (!Plausible(object)) return false;
  std::string head(layout_.text.size, 0);
  const uint64_t begin = object + static_cast<uint64_t>(layout_.text.low);
  if (!memory->Read(begin, head.data(), layout_.text.size)) return false;
  // struct PyASCIIObject.state: interned:2, kind:3, compact:1, ascii:1.
  const uint32_t state = LoadAt<uint32_t>(head.data(), at.str_state - layout_.text.low);
  const uint64_t length =
      LoadAt<uint64_t>(head.data(), at.str_length - layout_.text.low);
  const uint32_t kind = state >> 2 & 7;
  const bool compact = (state & 1 << 5) != 0;
  const bool ascii = (state & 1 << 6) != 0;
  if (!compact || (kind != 1 && kind != 2 && kind != 4)) return false;
  const uint64_t data =
      object + static_cast<uint64_t>(ascii ? at.str_ascii_size : at.str_compact_size);
  std::string raw(std::min<uint64_t>(length, limit) * kind, 0);
  if (!raw.empty() &&
      !memory->Read(data, raw.data(), static_cast<uint32_t>(raw.size()))) {
    return false;
  }
  const uint64_t length_at = object + static_cast<uint64_t>(at.str_length);
  AddCheck(length_at, length_at, length, data, raw, slot);
  *text = ascii ? std::move(raw) : ToUtf8(raw, kind);
  return true;
}

bool CodeBook::ReadBytes(uint64_t object, size_t limit, TargetMemory* memory,
                         std::optional<std::string>* data, Slot* slot) const {
  const abi::PythonLayout& at = layout_.at;
  if (!Plausible(object)) return false;
  const uint64_t size_at = object + static_cast<uint64_t>(at.bytes_size);
  uint64_t size = 0;
  if (!memory->Read(size_at, &size, sizeof(size))) return false;
  const uint64_t data_at = object + static_cast<uint64_t>(at.bytes_data);
  std::string bytes(size <= limit ? size : 0, 0);
  if (!bytes.empty() &&
      !memory->Read(data_at, bytes.data(), static_cast<uint32_t>(size))) {
    return false;
  }
  AddCheck(size_at, size_at, size, data_at, bytes, slot);
  if (size <= limit) *data = std::move(bytes);
  return true;
}

bool CodeBook::ReadNew(uint64_t address, const Head& head, TargetMemory* memory,
                       Slot* slot) {
  if (names_.size() > kMostNames || name_bytes_ > kMostNameBytes) return false;
  Code code;
  std::string file, function;
  if (!ReadText(head.filename, kMostFilename, memory, &file, slot) ||
      !ReadText(head.name, kMostName, memory, &function, slot) ||
      !ReadBytes(head.line_table, kMostLineTable, memory, &code.line_table, slot)) {
    return false;
  }
  // It was there all the while.
  std::string again(layout_.code.size, 0);
  if (!memory->Read(address + static_cast<uint64_t>(layout_.code.low), again.data(),
                    layout_.code.size) ||
      !(HeadIn(again.data()) == head)) {
    return false;
  }
  code.name = NumberOfName({CleanText(function), CleanText(file)});
  code.first_line = head.first_line;
  if (code.line_table) code_bytes_ += code.line_table->size();
  for (const Expected& expected : slot->expected) code_bytes_ += expected.bytes.size();
  slot->head = head;
  slot->code = static_cast<uint32_t>(codes_.size());
  codes_.push_back(std::move(code));
  return true;
}

uint32_t CodeBook::NumberOfName(FrameName name) {
  auto [entry, fresh] = numbers_.try_emplace({name.function, name.file},
                                             static_cast<uint32_t>(names_.size()));
  if (fresh) {
    name_bytes_ += 2 * (name.function.size() + name.file.size());  // here and as a key
    names_.push_back(std::move(name));
  }
  return entry->second;
}

int32_t CodeBook::Line(uint32_t number, int32_t lasti) {
  Code& code = codes_[number];
  // No code has more: the instructions are made up.
  if (code.lines.size() > kMostLinesOfCode) code.lines.clear();
  auto [entry, fresh] = code.lines.try_emplace(lasti, 0);
  if (fresh) {
    entry->second = std::max(
        LineOfInstruction(layout_.at.minor, code.first_line, code.line_table, lasti),
        kNoLine);
  }
  return entry->second;
}

}  // namespace lull::relay
