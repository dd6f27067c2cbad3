#include "preload/scopes/scope_name.h"

#include <string.h>

namespace lull {
namespace {

constexpr char kLoader[] = "enumerate(DataLoader)#";
constexpr char kNext[] = ".__next__";
constexpr char kOptimizer[] = "Optimizer.step#";
constexpr char kNothingLeft[] = "(unnamed)";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool separates(char c) { return c == ' ' || c == '#' || c == '=' || c == ':'; }

// How much of it is left without a number that counts.
size_t without_count(const char* text, size_t size) {
  size_t stem = size;
  while (stem > 0 && is_digit(text[stem - 1])) --stem;
  size_t digits = size - stem;
  if (digits == 0) return size;
  bool counts = digits >= 3 || (stem > 0 && separates(text[stem - 1]));
  if (!counts) return size;
  while (stem > 0 && separates(text[stem - 1])) --stem;
  return stem;
}

bool is_of_loader(const char* text, size_t size) {
  constexpr size_t kHead = sizeof kLoader - 1, kTail = sizeof kNext - 1;
  return size >= kHead + kTail && memcmp(text, kLoader, kHead) == 0 &&
         memcmp(text + size - kTail, kNext, kTail) == 0;
}

bool is_of_optimizer(const char* text, size_t size) {
  constexpr size_t kHead = sizeof kOptimizer - 1;
  return size > kHead && memcmp(text, kOptimizer, kHead) == 0;
}

}  // namespace

ScopeName judge_scope_name(const char* name) {
  size_t size = name == nullptr ? 0 : strnlen(name, kMostScopeName + 1);
  if (size > kMostScopeName) {
    size = kMostScopeName;  // the end of it is not known
  } else {
    size = without_count(name, size);
  }
  if (size == 0) return {kNothingLeft, sizeof kNothingLeft - 1, false, false};
  return {name, size, is_of_loader(name, size), is_of_optimizer(name, size)};
}

}  // namespace lull
