// Without a loader: nothing can be taken into it.
#include <unistd.h>

int main(void) {
  for (;;) pause();
}
