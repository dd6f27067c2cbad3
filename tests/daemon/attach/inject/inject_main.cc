// The injector as a command, for tests that kill it:
//   inject_main PID LIBRARY FUNCTION [ARGUMENT]
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <string>

#include "daemon/attach/inject/inject.h"

int main(int count, char** arguments) {
  if (count < 4) return 2;
  lull::inject::Request request;
  request.pid = atoi(arguments[1]);
  request.library = request.identity = arguments[2];
  request.function = arguments[3];
  if (count > 4) request.argument = arguments[4];
  std::atomic<bool> cancel = false;
  auto outcome = lull::inject::Injector().Call(request, cancel);
  if (!outcome.ok()) {
    fprintf(stderr, "%s\n", outcome.status().ToString().c_str());
    return 1;
  }
  printf(
      "result=%lx loaded=%d tid=%d blocked=%d looks=%d stopped_us=%ld other_us=%ld\n",
      outcome->result, outcome->loaded, outcome->tid, outcome->thread_was_blocked,
      outcome->looks, absl::ToInt64Microseconds(outcome->stopped),
      absl::ToInt64Microseconds(outcome->longest_other));
  return 0;
}
