#include "daemon/base/clock_identity.h"

#include <sys/stat.h>

#include <fstream>

namespace lull {
namespace {

ClockIdentity Read() {
  ClockIdentity identity;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, identity.boot_id);
  struct stat info;
  if (stat("/proc/self/ns/time", &info) == 0) identity.time_namespace = info.st_ino;
  return identity;
}

}  // namespace

const ClockIdentity& OwnClock() {
  static const auto& identity = *new ClockIdentity(Read());
  return identity;
}

}  // namespace lull
