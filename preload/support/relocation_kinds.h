// The two kinds of relocation by which an object calls another one's functions, and the
// two by which it finds what it keeps for each thread through the loader.
#pragma once

#include <elf.h>

#include <cstdint>

namespace lull {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr uint32_t kGlobalData = R_X86_64_GLOB_DAT;
constexpr uint32_t kThreadModule = R_X86_64_DTPMOD64;
constexpr uint32_t kThreadDescriptor = R_X86_64_TLSDESC;
#else
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr uint32_t kGlobalData = R_AARCH64_GLOB_DAT;
constexpr uint32_t kThreadModule = R_AARCH64_TLS_DTPMOD;
constexpr uint32_t kThreadDescriptor = R_AARCH64_TLSDESC;
#endif

}  // namespace lull
