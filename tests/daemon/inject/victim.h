// The parts of the victim program.
#pragma once

#include "tests/daemon/inject/shared_page.h"

struct Kind {
  const char* name;
  void (*body)(int thread);  // runs until Stopped()
  void (*before)();          // once, on the main thread
};
extern const Kind kKinds[];

extern const char* library;  // the command's last argument

long NowNs();
bool Stopped();
void Count(bool good, long detail);  // one check
void Took(long ns);                  // one wait

void ComputeWithAllRegisters(int thread);  // victim_registers.cc
void SleepInTurns(const char* how);        // victim_waits.cc
void Block(const char* how);
