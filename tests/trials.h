// How often a test of chance, or one of a large random job, tries.
#pragma once

namespace lull {

// A sanitizer finds what it finds in a few trials and makes each of them twenty times as
// long; how often a claim holds is judged by the plain build alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

template <typename Number>
constexpr Number Trials(Number plain, Number sanitized) {
  return kSanitized ? sanitized : plain;
}

}  // namespace lull
