// Says "ready", waits for a line on its input, says "done" and exits with 7. Its
// argument makes it one that is hard to attach to:
//   undumpable   shielded by the kernel
//   strict       in seccomp's strict mode
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int said(const char* text) {
  return write(1, text, strlen(text)) == (ssize_t)strlen(text);
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "";
  char byte;
  if (strcmp(kind, "undumpable") == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return 1;
  }
  if (strcmp(kind, "strict") == 0 &&
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0) {
    return 1;
  }
  if (!said("ready\n") || read(0, &byte, 1) != 1 || !said("done\n")) return 1;
  syscall(SYS_exit, 7);  // the strict mode knows no exit_group
  return 1;
}
