// Messages with anything in them, for tests of what is printed of them.
#pragma once

#include <cstdint>
#include <random>

#include "google/protobuf/message.h"

namespace lull::testing {

class RandomMessages {
 public:
  explicit RandomMessages(uint64_t seed) : random_(seed) {}

  // Sets about half of the fields, 0 to 2 of a list, and messages in it `deep` levels
  // down. Enums may have values that are not known, strings may be empty.
  void Fill(google::protobuf::Message* message, int deep);

 private:
  void Set(google::protobuf::Message* message,
           const google::protobuf::FieldDescriptor& field, int deep);
  size_t Below(size_t bound) { return random_() % bound; }
  uint64_t Unsigned();
  std::string Text();

  std::mt19937_64 random_;
};

}  // namespace lull::testing
