/* Leaves a mark where it is loaded. */
#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void load(void) {
  close(open("/tmp/loaded", O_CREAT | O_WRONLY, 0666));
}
