// A program that something is done to: victim KIND SHARED_PAGE [THREADS] [LIBRARY].
// It checks itself all the time, and tells of it in the shared page.
#include "tests/daemon/attach/inject/victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <thread>
#include <vector>

SharedPage* page;
const char* library;

long NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000l + now.tv_nsec;
}

void Count(bool good, long detail) {
  ++page->rounds;
  if (good) return;
  page->detail = detail;
  ++page->errors;
}

void Took(long ns) {
  if (ns > page->longest) page->longest = ns;
  if (page->shortest == 0 || ns < page->shortest) page->shortest = ns;
}

bool Stopped() { return page->stop != 0; }

void InThreads(int count, void (*body)(int)) {
  std::vector<std::thread> threads;
  for (int i = 1; i < count; ++i) threads.emplace_back(body, i);
  page->ready = 1;
  body(0);
  for (std::thread& thread : threads) thread.join();
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  page = MapSharedPage(arguments[2]);
  if (page == nullptr) return 2;
  int threads = count > 3 ? atoi(arguments[3]) : 1;
  library = count > 4 ? arguments[4] : nullptr;
  for (const Kind* at = kKinds; at->name != nullptr; ++at) {
    const Kind& kind = *at;
    if (strcmp(kind.name, arguments[1]) != 0) continue;
    if (kind.before != nullptr) kind.before();
    InThreads(threads, kind.body);
    return page->errors == 0 ? 0 : 1;
  }
  if (const Wait* wait = FindWait(arguments[1])) {
    BlockIn(*wait);
    return page->errors == 0 ? 0 : 1;
  }
  fprintf(stderr, "no such kind: %s\n", arguments[1]);
  return 2;
}
