// The parts of the victim program.
#pragma once

#include "tests/daemon/attach/inject/shared_page.h"

struct Kind {
  const char* name;
  void (*body)(int thread);  // runs until Stopped()
  void (*before)();          // once, on the main thread
};
extern const Kind kKinds[];

extern SharedPage* page;
extern const char* library;  // the command's last argument

long NowNs();
bool Stopped();
void Count(bool good, long detail);  // one check
void Took(long ns);                  // one wait

void ComputeWithAllRegisters(int thread);  // victim_registers.cc
void SleepInTurns(const char* how);        // victim_waits.cc

void FiberInMapping(int thread);  // victim_stacks.cc, these and the next
void LargeFiberInMapping(int thread);
void FiberInHeap(int thread);
void FiberInThread(int thread);
void FiberBesideMain(int thread);
void GivenStack(int thread);
void RawClone(int thread);
void SignalStack(int thread);
void ForkedByThread(int thread);  // the child's number in page->detail

// A wait for something that happens when the test says so (victim_blocks.cc).
struct Wait {
  const char* name;
  bool (*wait)();  // true: it ended as it should; else errno says why
  void (*wake)();  // makes it end, on another thread
};
const Wait* FindWait(const char* name);  // nullptr: there is none
void BlockIn(const Wait& wait);
