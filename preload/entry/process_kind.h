// What a Python process is there for, judged by its command line alone. Pure.
//
// Launchers and helpers do no training themselves; recording their waits would
// bury the job's own. They start to record only when they touch the GPU or
// allocate tensors (state.h, Mode::kCandidate).
#pragma once

namespace lull {

enum class ProcessKind {
  kOrdinary,
  kLauncher,  // torchrun and its like: starts the ranks and waits
  kHelper,    // multiprocessing's spawn child, fork server and resource tracker,
              // torch.compile's workers
};

// argv as the process got it: argv[0] is the interpreter, or a program that embeds
// one. Null and empty vectors are ordinary.
ProcessKind classify_process(int argc, const char* const* argv);

}  // namespace lull
