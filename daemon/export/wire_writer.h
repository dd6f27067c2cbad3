// The wire format of protobuf, field by field, appended to a string: for messages that
// come by the million, most of whose bytes are the same each time.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace lull::exports {

class WireWriter {
 public:
  explicit WireWriter(std::string& out) : out_(out) {}

  void Number(int field, uint64_t value) {
    Varint(static_cast<uint64_t>(field) << 3);
    Varint(value);
  }
  void Fixed64(int field, uint64_t value) {
    Varint(static_cast<uint64_t>(field) << 3 | 1);
    char bytes[sizeof(value)];
    for (char& byte : bytes) {  // little-endian, whatever this machine is
      byte = static_cast<char>(value & 0xff);
      value >>= 8;
    }
    out_.append(bytes, sizeof(bytes));
  }
  void Double(int field, double value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    Fixed64(field, bits);
  }
  // A string, or a message that has been written already.
  void Bytes(int field, std::string_view bytes) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(bytes.size());
    out_.append(bytes);
  }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      out_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    }
    out_.push_back(static_cast<char>(value));
  }

  std::string& out_;
};

}  // namespace lull::exports
