// The sleeper without any library, for `gcc -m32 -nostdlib -static`, which needs no
// 32-bit packages.
__asm__(
    ".globl _start\n"
    "_start: call write_ready\n"
    ".ascii \"ready\\n\"\n"
    "write_ready: popl %ecx; movl $6, %edx; movl $1, %ebx; movl $4, %eax; int $0x80\n"
    "subl $4, %esp; movl %esp, %ecx; movl $1, %edx; xorl %ebx, %ebx; movl $3, %eax\n"
    "int $0x80\n"
    "call write_done\n"
    ".ascii \"done\\n\"\n"
    "write_done: popl %ecx; movl $5, %edx; movl $1, %ebx; movl $4, %eax; int $0x80\n"
    "movl $7, %ebx; movl $1, %eax; int $0x80\n");
