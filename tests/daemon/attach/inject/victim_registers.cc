// Every register of the thread holds a value that is checked over and over.
#include <stdint.h>
#include <string.h>

#include "tests/daemon/attach/inject/victim.h"

#ifdef __x86_64__
namespace {
constexpr int kGeneral = 13;  // rbx rcx rdx rsi rdi rbp r8..r14
}
extern "C" {
// Referred to by the assembly below, relative to the instruction.
__attribute__((visibility("hidden"))) uint64_t victim_in[kGeneral];
__attribute__((visibility("hidden"))) uint64_t victim_out[kGeneral];
alignas(64) __attribute__((visibility("hidden"))) uint8_t victim_vectors_in[32 * 64];
alignas(64) __attribute__((visibility("hidden"))) uint8_t victim_vectors_out[32 * 64];
__attribute__((visibility("hidden"))) double victim_x87_in[8];
__attribute__((visibility("hidden"))) double victim_x87_out[8];
__attribute__((visibility("hidden"))) uint64_t victim_zone_out[16];
__attribute__((visibility("hidden"))) uint32_t victim_mxcsr_in = 0x7f80;  // to zero
__attribute__((visibility("hidden"))) uint32_t victim_mxcsr_out;
__attribute__((visibility("hidden"))) uint16_t victim_fcw_in = 0x0f7f;  // to zero
__attribute__((visibility("hidden"))) uint16_t victim_fcw_out;
__attribute__((visibility("hidden"))) uint64_t victim_masks_out[8];
__attribute__((visibility("hidden"))) uint64_t victim_saved[8];
__attribute__((visibility("hidden"))) void victim_round();
__attribute__((visibility("hidden"))) void victim_round_512();
}

#define EACH8(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7)
#define GENERAL_IN                                                \
  "mov victim_in+0(%rip), %rbx\n mov victim_in+8(%rip), %rcx\n"   \
  "mov victim_in+16(%rip), %rdx\n mov victim_in+24(%rip), %rsi\n" \
  "mov victim_in+32(%rip), %rdi\n mov victim_in+40(%rip), %rbp\n" \
  "mov victim_in+48(%rip), %r8\n mov victim_in+56(%rip), %r9\n"   \
  "mov victim_in+64(%rip), %r10\n mov victim_in+72(%rip), %r11\n" \
  "mov victim_in+80(%rip), %r12\n mov victim_in+88(%rip), %r13\n" \
  "mov victim_in+96(%rip), %r14\n"
#define GENERAL_OUT                                                 \
  "mov %rbx, victim_out+0(%rip)\n mov %rcx, victim_out+8(%rip)\n"   \
  "mov %rdx, victim_out+16(%rip)\n mov %rsi, victim_out+24(%rip)\n" \
  "mov %rdi, victim_out+32(%rip)\n mov %rbp, victim_out+40(%rip)\n" \
  "mov %r8, victim_out+48(%rip)\n mov %r9, victim_out+56(%rip)\n"   \
  "mov %r10, victim_out+64(%rip)\n mov %r11, victim_out+72(%rip)\n" \
  "mov %r12, victim_out+80(%rip)\n mov %r13, victim_out+88(%rip)\n" \
  "mov %r14, victim_out+96(%rip)\n"
#define SAVE                                                            \
  "mov %rbx, victim_saved(%rip)\n mov %rbp, victim_saved+8(%rip)\n"     \
  "mov %r12, victim_saved+16(%rip)\n mov %r13, victim_saved+24(%rip)\n" \
  "mov %r14, victim_saved+32(%rip)\n mov %r15, victim_saved+40(%rip)\n" \
  "stmxcsr victim_saved+48(%rip)\n fnstcw victim_saved+56(%rip)\n"
#define RESTORE                                                         \
  "mov victim_saved(%rip), %rbx\n mov victim_saved+8(%rip), %rbp\n"     \
  "mov victim_saved+16(%rip), %r12\n mov victim_saved+24(%rip), %r13\n" \
  "mov victim_saved+32(%rip), %r14\n mov victim_saved+40(%rip), %r15\n" \
  "ldmxcsr victim_saved+48(%rip)\n fldcw victim_saved+56(%rip)\n vzeroupper\n"
#define FLOAT_IN                                                         \
  "fninit\n fldcw victim_fcw_in(%rip)\n ldmxcsr victim_mxcsr_in(%rip)\n" \
  "fldl victim_x87_in+56(%rip)\n fldl victim_x87_in+48(%rip)\n"          \
  "fldl victim_x87_in+40(%rip)\n fldl victim_x87_in+32(%rip)\n"          \
  "fldl victim_x87_in+24(%rip)\n fldl victim_x87_in+16(%rip)\n"          \
  "fldl victim_x87_in+8(%rip)\n fldl victim_x87_in+0(%rip)\n"
#define FLOAT_OUT                                                   \
  "fnstcw victim_fcw_out(%rip)\n stmxcsr victim_mxcsr_out(%rip)\n"  \
  "fstpl victim_x87_out+0(%rip)\n fstpl victim_x87_out+8(%rip)\n"   \
  "fstpl victim_x87_out+16(%rip)\n fstpl victim_x87_out+24(%rip)\n" \
  "fstpl victim_x87_out+32(%rip)\n fstpl victim_x87_out+40(%rip)\n" \
  "fstpl victim_x87_out+48(%rip)\n fstpl victim_x87_out+56(%rip)\n"
// The 128 bytes below the stack pointer are the function's own.
#define ZONE_IN "mov $16, %eax\n 3: mov %rax, -136(%rsp,%rax,8)\n dec %eax\n jnz 3b\n"
#define ZONE_OUT                                      \
  "mov $16, %eax\n lea victim_zone_out(%rip), %rbx\n" \
  "4: mov -136(%rsp,%rax,8), %rcx\n mov %rcx, -8(%rbx,%rax,8)\n dec %eax\n jnz 4b\n"
#define SPIN "mov $300000, %eax\n 1: dec %eax\n jnz 1b\n"

#define YMM(n) "vmovdqu victim_vectors_in+64*" #n "(%rip), %ymm" #n "\n"
#define YMM_OUT(n) "vmovdqu %ymm" #n ", victim_vectors_out+64*" #n "(%rip)\n"
#define ZMM(n) "vmovdqu64 victim_vectors_in+64*" #n "(%rip), %zmm" #n "\n"
#define ZMM_OUT(n) "vmovdqu64 %zmm" #n ", victim_vectors_out+64*" #n "(%rip)\n"
#define EACH16(m) EACH8(m) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)
#define EACH32(m)                                                                     \
  EACH16(m)                                                                           \
  m(16) m(17) m(18) m(19) m(20) m(21) m(22) m(23) m(24) m(25) m(26) m(27) m(28) m(29) \
      m(30) m(31)
#define MASK(n) "kmovw victim_vectors_in+8*" #n "(%rip), %k" #n "\n"
#define MASK_OUT(n) "kmovw %k" #n ", victim_masks_out+8*" #n "(%rip)\n"

asm(".text\n victim_round:\n" SAVE FLOAT_IN EACH16(YMM)
        ZONE_IN GENERAL_IN SPIN GENERAL_OUT EACH16(YMM_OUT) FLOAT_OUT ZONE_OUT RESTORE
    "ret\n");
asm(".text\n victim_round_512:\n" SAVE FLOAT_IN EACH32(ZMM) EACH8(MASK)
        ZONE_IN GENERAL_IN SPIN GENERAL_OUT EACH32(ZMM_OUT) EACH8(MASK_OUT)
            FLOAT_OUT ZONE_OUT RESTORE "ret\n");

void ComputeWithAllRegisters(int) {
  bool wide = __builtin_cpu_supports("avx512f");
  size_t vectors = 0;
  for (int i = 0; i < kGeneral; ++i) victim_in[i] = 0x0101010101010101ull * (i + 1);
  for (size_t i = 0; i < sizeof(victim_vectors_in); ++i) {
    victim_vectors_in[i] = static_cast<uint8_t>(i * 31 + i / 64 + 1);
  }
  for (int i = 0; i < 8; ++i) victim_x87_in[i] = 1.5 * i - 3;
  vectors = wide ? 32 : 16;
  while (!Stopped()) {
    long begin = NowNs();
    memset(victim_vectors_out, 0, sizeof(victim_vectors_out));
    wide ? victim_round_512() : victim_round();
    Took(NowNs() - begin);
    long wrong = 0;
    if (memcmp(victim_in, victim_out, sizeof(victim_in)) != 0) wrong |= 1;
    size_t width = wide ? 64 : 32;
    for (size_t i = 0; i < vectors; ++i) {
      if (memcmp(victim_vectors_in + 64 * i, victim_vectors_out + 64 * i, width) != 0) {
        wrong |= 2;
      }
    }
    if (memcmp(victim_x87_in, victim_x87_out, sizeof(victim_x87_in)) != 0) wrong |= 4;
    if (victim_mxcsr_out != victim_mxcsr_in || victim_fcw_out != victim_fcw_in) {
      wrong |= 8;
    }
    for (uint64_t i = 0; i < 16; ++i) {
      if (victim_zone_out[i] != i + 1) wrong |= 16;
    }
    for (int i = 0; wide && i < 8; ++i) {
      uint16_t mask;
      memcpy(&mask, victim_vectors_in + 8 * i, sizeof(mask));
      if (static_cast<uint16_t>(victim_masks_out[i]) != mask) wrong |= 32;
    }
    Count(wrong == 0, wrong);
  }
}
#endif

#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>

namespace {
constexpr int kGeneral = 30;  // x0 to x28; one for the sake of pairs
constexpr size_t kWidest = 256;
}  // namespace
extern "C" {
// Referred to by the assembly below, relative to the instruction.
__attribute__((visibility("hidden"))) uint64_t victim_in[kGeneral];
__attribute__((visibility("hidden"))) uint64_t victim_out[kGeneral];
alignas(64)
    __attribute__((visibility("hidden"))) uint8_t victim_vectors_in[32 * kWidest];
alignas(64)
    __attribute__((visibility("hidden"))) uint8_t victim_vectors_out[32 * kWidest];
alignas(64) __attribute__((visibility("hidden"))) uint8_t victim_masks_in[2 * kWidest];
alignas(64) __attribute__((visibility("hidden"))) uint8_t victim_masks_out[2 * kWidest];
__attribute__((visibility("hidden"))) uint64_t victim_control_in = 3 << 22;  // to zero
__attribute__((visibility("hidden"))) uint64_t victim_control_out;
__attribute__((visibility("hidden"))) void victim_round();
__attribute__((visibility("hidden"))) void victim_round_wide();
__attribute__((visibility("hidden"))) uint64_t victim_width();
}

#define EACH_PAIR(m)                                                              \
  m(0, 1) m(2, 3) m(4, 5) m(6, 7) m(8, 9) m(10, 11) m(12, 13) m(14, 15) m(16, 17) \
      m(18, 19) m(20, 21) m(22, 23) m(24, 25) m(26, 27)
#define MORE_PAIRS(m) m(28, 29) m(30, 31)
#define EACH16(m) \
  m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)
#define EACH32(m)                                                                     \
  EACH16(m)                                                                           \
  m(16) m(17) m(18) m(19) m(20) m(21) m(22) m(23) m(24) m(25) m(26) m(27) m(28) m(29) \
      m(30) m(31)
#define AT(name) "adrp x30, " #name "\n add x30, x30, :lo12:" #name "\n"
#define SAVE                                               \
  "stp x29, x30, [sp, #-176]!\n stp x19, x20, [sp, #16]\n" \
  "stp x21, x22, [sp, #32]\n stp x23, x24, [sp, #48]\n"    \
  "stp x25, x26, [sp, #64]\n stp x27, x28, [sp, #80]\n"    \
  "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n"     \
  "stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"  \
  "mrs x0, fpcr\n str x0, [sp, #160]\n" AT(                \
      victim_control_in) "ldr x0, [x30]\n msr fpcr, x0\n"
#define RESTORE \
  "mrs x0, fpcr\n" AT(victim_control_out) "str x0, [x30]\n"                     \
  "ldr x0, [sp, #160]\n msr fpcr, x0\n"                                         \
  "ldp d14, d15, [sp, #144]\n ldp d12, d13, [sp, #128]\n"                       \
  "ldp d10, d11, [sp, #112]\n ldp d8, d9, [sp, #96]\n"                          \
  "ldp x27, x28, [sp, #80]\n ldp x25, x26, [sp, #64]\n"                         \
  "ldp x23, x24, [sp, #48]\n ldp x21, x22, [sp, #32]\n"                         \
  "ldp x19, x20, [sp, #16]\n ldp x29, x30, [sp], #176\n ret\n"
#define LOAD(a, b) "ldp x" #a ", x" #b ", [x30, #8*" #a "]\n"
#define STORE(a, b) "stp x" #a ", x" #b ", [x30, #8*" #a "]\n"
#define GENERAL_IN AT(victim_in) EACH_PAIR(LOAD) "ldr x28, [x30, #8*28]\n"
#define GENERAL_OUT AT(victim_out) EACH_PAIR(STORE) "str x28, [x30, #8*28]\n"
#define SPIN \
  "movz x29, #37856\n movk x29, #4, lsl #16\n 1: subs x29, x29, #1\n b.ne 1b\n"
#define QUAD(a, b) "ldp q" #a ", q" #b ", [x30, #16*" #a "]\n"
#define QUAD_OUT(a, b) "stp q" #a ", q" #b ", [x30, #16*" #a "]\n"
#define WIDE(n) "ldr z" #n ", [x30, #" #n ", mul vl]\n"
#define WIDE_OUT(n) "str z" #n ", [x30, #" #n ", mul vl]\n"
#define MASK(n) "ldr p" #n ", [x30, #" #n ", mul vl]\n"
#define MASK_OUT(n) "str p" #n ", [x30, #" #n ", mul vl]\n"

asm(".text\n victim_round:\n" SAVE AT(victim_vectors_in) EACH_PAIR(QUAD)
        MORE_PAIRS(QUAD) GENERAL_IN SPIN GENERAL_OUT AT(victim_vectors_out)
            EACH_PAIR(QUAD_OUT) MORE_PAIRS(QUAD_OUT) RESTORE);
asm(".arch_extension sve\n victim_round_wide:\n" SAVE AT(victim_vectors_in) EACH32(WIDE)
        AT(victim_masks_in) EACH16(MASK)
            GENERAL_IN SPIN GENERAL_OUT AT(victim_vectors_out) EACH32(WIDE_OUT)
                AT(victim_masks_out) EACH16(MASK_OUT) RESTORE
    "victim_width:\n rdvl x0, #1\n ret\n");

void ComputeWithAllRegisters(int) {
  const bool wide = (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
  const size_t width = wide ? victim_width() : 16;
  for (int i = 0; i < kGeneral; ++i) victim_in[i] = 0x0101010101010101ull * (i + 1);
  for (size_t i = 0; i < sizeof(victim_vectors_in); ++i) {
    victim_vectors_in[i] = static_cast<uint8_t>(i * 31 + i / 64 + 1);
  }
  for (size_t i = 0; i < sizeof(victim_masks_in); ++i) {
    victim_masks_in[i] = static_cast<uint8_t>(i * 13 + 5);
  }
  while (!Stopped()) {
    long begin = NowNs();
    memset(victim_vectors_out, 0, sizeof(victim_vectors_out));
    memset(victim_masks_out, 0, sizeof(victim_masks_out));
    wide ? victim_round_wide() : victim_round();
    Took(NowNs() - begin);
    long wrong = 0;
    if (memcmp(victim_in, victim_out, 29 * sizeof(uint64_t)) != 0) wrong |= 1;
    if (memcmp(victim_vectors_in, victim_vectors_out, 32 * width) != 0) wrong |= 2;
    if (victim_control_in != victim_control_out) wrong |= 8;
    if (wide && memcmp(victim_masks_in, victim_masks_out, 2 * width) != 0) wrong |= 32;
    Count(wrong == 0, wrong);
  }
}
#endif
