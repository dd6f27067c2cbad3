#include "daemon/procfs/address_space.h"

#include <unistd.h>

namespace lull {

bool IsOfNobody(const UniqueFd& memory) {
  // Below what any program may map. Of a program that is there it is an error.
  constexpr off_t kNowhere = 4096;
  char byte;
  return memory && pread(memory.get(), &byte, 1, kNowhere) == 0;
}

}  // namespace lull
