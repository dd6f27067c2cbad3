// dlsym, so that programs which open CUDA by themselves are seen (ctypes,
// Triton, JAX, every static cudart).
//
// The rule of this file: any doubt, and the answer is what it would have been
// without us. glibc judges RTLD_NEXT and RTLD_DEFAULT by the return address of
// its caller, so a look-up that is not ours to answer jumps to the real dlsym
// with the caller's own frame, stack and arguments. That takes assembly: no
// compiler promises a tail call.
//
// May run before our constructor: it needs none of it.
#include "preload/attach/slots.h"
#include "preload/hooks/wrapper_table.h"
#include "preload/stacks/stacks.h"
#include "preload/support/libdl.h"
#include "preload/support/own_code.h"

namespace lull {
namespace {

// Returned in two registers; read by the assembly below.
struct Route {
  void* answer;        // if `go_on` is null
  libdl::Dlsym go_on;  // else jump there
};

// Does the loader search the caller's object before ours? Only the program
// itself and libraries preloaded ahead of us can be there.
bool precedes_us(const void* caller) {
  const link_map* object = libdl::object_of(caller);
  for (const link_map* us = libdl::object_of(&__ehdr_start); us != nullptr;
       us = us->l_prev) {
    if (us->l_prev == object) return object != nullptr;
  }
  return false;
}

// A library loaded with RTLD_LOCAL sees its own dependencies by RTLD_DEFAULT.
void* find_beside(const void* caller, const char* name, libdl::Dlsym real) {
  const link_map* object = libdl::object_of(caller);
  if (object == nullptr || object->l_name == nullptr || *object->l_name == '\0') {
    return nullptr;
  }
  void* handle = libdl::open(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* found = real(handle, name);
  libdl::close(handle);
  return found;
}

// What is there without us, when the search of the program met us first.
void* find_behind_us(void* handle, const char* name, const void* caller,
                     libdl::Dlsym real) {
  void* found = real(RTLD_NEXT, name);
  if (found != nullptr || handle != RTLD_DEFAULT) return found;
  found = find_beside(caller, name, real);
  if (found != nullptr) libdl::error();  // a success leaves no message
  return found;
}

// We are in nobody's scope, so there is nothing of ours to look behind; and only a
// library's own handle finds for us what it finds for the caller.
Route route_cuda_late(void* handle, const char* name, libdl::Dlsym real) {
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) return {nullptr, real};
  void* found = real(handle, name);
  return {found != nullptr ? wrapper_for(name, found) : nullptr, nullptr};
}

Route route_cuda(void* handle, const char* name, const void* caller,
                 libdl::Dlsym real) {
  if (libdl::loaded_late()) return route_cuda_late(handle, name, real);
  if (handle == RTLD_NEXT) {
    // Without CUDA there must be nothing: not even us.
    bool nothing = precedes_us(caller) && real(RTLD_NEXT, name) == nullptr;
    return {nullptr, nothing ? nullptr : real};
  }
  void* found = real(handle, name);
  if (is_our_code(found)) {
    found = find_behind_us(handle, name, caller, real);
  }
  return {found != nullptr ? wrapper_for(name, found) : nullptr, nullptr};
}

}  // namespace

extern "C" __attribute__((visibility("hidden"), used)) Route lull_dlsym_route(
    void* handle, const char* name, const void* caller) {
  libdl::Dlsym real = libdl::real_dlsym();
  if (!libdl::is_glibc()) return {nullptr, real};
  slots_follow();  // who asks for a symbol has often just loaded something
  if (real == nullptr || name == nullptr) return {nullptr, real};
  stacks_load_if_wanted();
  if (!is_hooked_cuda_name(name)) return {nullptr, real};
  return route_cuda(handle, name, caller, real);
}

}  // namespace lull

#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlsym
  .protected dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  movq (%rsp), %rdx
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call lull_dlsym_route
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rdx, %rdx
  jz 1f
  jmp *%rdx
1:
  ret
  .cfi_endproc
  .size dlsym, .-dlsym
  .globl lull_own_dlsym
  .hidden lull_own_dlsym
  .set lull_own_dlsym, dlsym
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dlsym
  .protected dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  hint #34
  stp x29, x30, [sp, #-32]!
  .cfi_adjust_cfa_offset 32
  .cfi_offset x29, -32
  .cfi_offset x30, -24
  mov x29, sp
  stp x0, x1, [sp, #16]
  mov x2, x30
  bl lull_dlsym_route
  mov x16, x1
  cbz x16, 1f
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_remember_state
  .cfi_adjust_cfa_offset -32
  .cfi_restore x29
  .cfi_restore x30
  br x16
1:
  .cfi_restore_state
  ldp x29, x30, [sp], #32
  .cfi_adjust_cfa_offset -32
  .cfi_restore x29
  .cfi_restore x30
  ret
  .cfi_endproc
  .size dlsym, .-dlsym
  .globl lull_own_dlsym
  .hidden lull_own_dlsym
  .set lull_own_dlsym, dlsym
)");
#endif
