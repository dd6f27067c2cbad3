// Holds JSON against a JSON Schema of the kind that lull prints, stricter than the
// standard: whole numbers and others are told apart as they are written, and keys come
// in the order in which the schema has them. tests/integration/schema_test.py does the
// same with a validator that others wrote.
#pragma once

#include <set>
#include <string>

#include "cli/render/json.h"

namespace lull::testing {

class SchemaCheck {
 public:
  explicit SchemaCheck(const Json& schema) : root_(schema) {}

  // What is wrong with `answer`; "" if nothing is.
  std::string Check(const Json& answer) { return Check(root_, answer, "", &seen_); }

  // What the schema allows and no answer had so far: types, words, keys that are there
  // and those that are not.
  std::set<std::string> Unseen() const;

 private:
  using Seen = std::set<std::string>;
  std::string Check(const Json& schema, const Json& value, const std::string& where,
                    Seen* seen) const;
  std::string CheckObject(const Json& schema, const Json& value,
                          const std::string& where, Seen* seen) const;
  void Allowed(const Json& schema, const std::string& where, Seen* all) const;

  const Json root_;
  Seen seen_;
};

}  // namespace lull::testing
