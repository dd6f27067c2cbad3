// What the JSON Schemas of answers are made of (draft 2020-12). Objects are closed, and
// what an answer has always is required; what may be unknown is null there.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "cli/render/json.h"
#include "google/protobuf/descriptor.h"

namespace lull::schema {

Json Text();
Json Flag();
Json Whole();   // also below 0
Json Count();   // a whole number, bytes and ids too
Json Amount();  // a time, a rate: 0 or more
Json Number();
Json Null();
Json OneOf(std::vector<std::string> words);
Json ListOf(Json items);
// A definition that documents share: site, frame, native_frame, job, gpu, losses,
// overhead.
Json Ref(const char* definition);

Json OrNull(Json schema);
inline Json AmountOrNull() { return OrNull(Amount()); }
inline Json TextOrNull() { return OrNull(Text()); }

// Any keys of the enum, and `unknown` for values that a newer collector has.
std::vector<std::string> KeysOf(const google::protobuf::EnumDescriptor& words,
                                const char* unknown);

// All of these keys and no others, but those of `optional` may be absent.
Json Object(Json properties, std::initializer_list<const char*> optional = {});
// An object whose keys are names: a value for each.
Json MapOf(Json values);

// ---- Changes of an object, as json_*.cc change a row: see row_json.h ----

class Row {
 public:
  // What RowJson() makes of this message.
  explicit Row(const google::protobuf::Descriptor& message);
  // SetNull()
  Row& OrNull(std::initializer_list<const char*> keys);
  // Insert()
  Row& Insert(const char* after, const char* key, Json schema);
  // json[key] = ...
  Row& Set(const char* key, Json schema);
  Row& Erase(const char* key);

  Json Done() const;

 private:
  Json properties_;
};

template <typename Message>
Row RowOf() {
  return Row(*Message::descriptor());
}
template <typename Message>
Json ListOfRows() {
  return ListOf(RowOf<Message>().Done());
}

// A schema by itself, with the definitions that it needs.
Json Document(const std::string& title, Json schema);

}  // namespace lull::schema
