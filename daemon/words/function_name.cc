#include "daemon/words/function_name.h"

#include <cctype>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lull {
namespace {

constexpr absl::string_view kAnonymous = "(anonymous namespace)::";
constexpr absl::string_view kLambda = "{lambda(";
constexpr absl::string_view kCall = "::operator()";
constexpr size_t kLongArguments = 16;  // of a template; longer ones say little

bool IsWordEnd(absl::string_view text) {
  return !text.empty() &&
         (std::isalnum(static_cast<unsigned char>(text.back())) || text.back() == '_');
}

bool EndsInOperator(absl::string_view text) {
  constexpr absl::string_view kOperator = "operator";
  if (!absl::ConsumeSuffix(&text, kOperator)) return false;
  return !IsWordEnd(text);
}

// Where the bracket that opens at `begin` is closed, or the end of the text.
size_t ClosingBracket(absl::string_view text, size_t begin) {
  size_t depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    char c = text[i];
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' && i > 0 && text[i - 1] == '-') continue;  // "->"
    if (c == '>' || c == ')' || c == '}' || c == ']') {
      if (--depth == 0) return i;
    }
  }
  return text.size();
}

// Reads a demangled name from left to right, and keeps what names the function.
class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) {}

  std::string Short() {
    while (at_ < text_.size()) Next();
    return std::move(name_);
  }

 private:
  void Next() {
    char c = text_[at_];
    if (absl::StartsWith(text_.substr(at_), kAnonymous)) {
      at_ += kAnonymous.size();
    } else if (EndsInOperator(name_) && !IsWord(c)) {
      Operator();
    } else if (c == '<' && IsWordEnd(name_)) {
      Arguments();
    } else if (c == '(' && at_ > 0) {
      SkipParameters();
    } else if (absl::StartsWith(text_.substr(at_), kLambda)) {
      at_ = ClosingBracket(text_, at_ + kLambda.size() - 1) + 1;
      name_ += "{lambda";
    } else if (c == ' ' && !absl::StrContains(name_, "{")) {
      name_.clear();  // that was the type that it returns
      ++at_;
    } else {
      name_ += c;
      ++at_;
    }
  }

  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  }

  // "operator()", "operator<<", "operator bool": up to the parameters.
  void Operator() {
    size_t end =
        absl::StartsWith(text_.substr(at_), "()") ? at_ + 2 : text_.find('(', at_);
    if (end == absl::string_view::npos) end = text_.size();
    absl::StrAppend(&name_, text_.substr(at_, end - at_));
    at_ = end;
  }

  void Arguments() {
    size_t end = ClosingBracket(text_, at_);
    absl::string_view arguments = text_.substr(at_, end + 1 - at_);
    absl::StrAppend(&name_, arguments.size() <= kLongArguments ? arguments : "<...>");
    at_ = end + 1;
  }

  // And what may follow them, unless the function is but the scope of another.
  void SkipParameters() {
    at_ = ClosingBracket(text_, at_) + 1;
    if (at_ > text_.size()) at_ = text_.size();
    for (absl::string_view word : {" const", " volatile", " &&", " &", "&&", "&"}) {
      if (absl::StartsWith(text_.substr(at_), word)) at_ += word.size();
    }
    if (!absl::StartsWith(text_.substr(at_), "::") && !name_.empty() &&
        (at_ == text_.size() || absl::StartsWith(text_.substr(at_), " ["))) {
      at_ = text_.size();  // " [clone .isra.0]"
    }
  }

  absl::string_view text_;
  size_t at_ = 0;
  std::string name_;
};

// "main::{lambda(int)#1}" of "std::_Function_handler<void (int), main::{lambda(int)#1}>
// ::_M_invoke(...)": the only function of the standard library's that says more by an
// argument than by its name.
absl::string_view CalledByTheLibrary(absl::string_view function) {
  size_t lambda = function.find(kLambda);
  size_t begin = function.find('<');
  if (lambda == absl::string_view::npos || begin > lambda) return {};
  absl::string_view name = function.substr(0, begin);
  name = name.substr(name.rfind(' ') + 1);
  if (!absl::StartsWith(name, "std::")) return {};
  // Back to what separates it from the argument before.
  size_t depth = 0;
  size_t start = lambda;
  for (; start > begin + 1; --start) {
    char before = function[start - 1];
    if (before == ')' || before == '>' || before == '}') ++depth;
    if (depth == 0 &&
        (before == '<' || before == ',' || before == ' ' || before == '('))
      break;
    if ((before == '(' || before == '<' || before == '{') && depth > 0) --depth;
  }
  return function.substr(start, ClosingBracket(function, lambda) + 1 - start);
}

bool IsCpp(absl::string_view function) {
  for (size_t i = 1; i < function.size(); ++i) {
    if (function[i] == '(') return true;
    if (function[i] == '<' && IsWordEnd(function.substr(0, i))) return true;
  }
  return absl::StartsWith(function, kAnonymous);
}

}  // namespace

std::string ShortFunction(absl::string_view function) {
  if (absl::string_view lambda = CalledByTheLibrary(function); !lambda.empty()) {
    function = lambda;
  }
  if (!IsCpp(function)) return std::string(function);
  std::string name = Reader(function).Short();
  if (absl::EndsWith(name, absl::StrCat("}", kCall))) {
    name.resize(name.size() - kCall.size());
  }
  return name.empty() ? std::string(function) : name;
}

}  // namespace lull
