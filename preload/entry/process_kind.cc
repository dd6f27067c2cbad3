#include "preload/entry/process_kind.h"

#include <string.h>

#include "preload/support/text.h"

namespace lull {
namespace {

constexpr const char* kLauncherScripts[] = {"torchrun", "accelerate", "deepspeed",
                                            "horovodrun"};
constexpr const char* kLauncherModules[] = {
    "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
    "deepspeed.launcher.runner", "deepspeed.launcher.launch"};
constexpr const char* kHelperModules[] = {"torch._inductor.compile_worker"};
constexpr const char* kHelperScripts[] = {"torch/_inductor/compile_worker/__main__.py"};
// What multiprocessing hands to `python -c`.
constexpr const char* kHelperCommands[] = {
    "from multiprocessing.spawn import ", "from multiprocessing.forkserver import ",
    "from multiprocessing.resource_tracker import ",
    "from multiprocessing.semaphore_tracker import "};

const char* base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Names are compared whole: "torch.distributed.run_tests" launches nothing.
ProcessKind kind_of_module(const char* module) {
  for (const char* launcher : kLauncherModules) {
    if (strcmp(module, launcher) == 0) return ProcessKind::kLauncher;
  }
  for (const char* helper : kHelperModules) {
    if (strcmp(module, helper) == 0) return ProcessKind::kHelper;
  }
  return ProcessKind::kOrdinary;
}

ProcessKind kind_of_command(const char* command) {
  for (const char* helper : kHelperCommands) {
    if (starts_with(command, helper)) return ProcessKind::kHelper;
  }
  return ProcessKind::kOrdinary;
}

ProcessKind kind_of_script(const char* script) {
  for (const char* launcher : kLauncherScripts) {
    if (strcmp(base_name(script), launcher) == 0) return ProcessKind::kLauncher;
  }
  for (const char* helper : kHelperScripts) {
    if (ends_with(script, helper)) return ProcessKind::kHelper;
  }
  return ProcessKind::kOrdinary;
}

}  // namespace

// Walks the interpreter's options as CPython does: short options may be joined
// ("-um"), and -c, -m, -W and -X take the rest of their word or the next one.
ProcessKind classify_process(int argc, const char* const* argv) {
  if (argv == nullptr || argv[0] == nullptr) return ProcessKind::kOrdinary;
  for (int i = 1; i < argc && argv[i] != nullptr; ++i) {
    const char* word = argv[i];
    if (word[0] != '-' || word[1] == 0) return kind_of_script(word);
    if (strcmp(word, "--") == 0) {
      return i + 1 < argc ? kind_of_script(argv[i + 1]) : ProcessKind::kOrdinary;
    }
    if (word[1] == '-') {
      if (strcmp(word, "--check-hash-based-pycs") == 0) ++i;
      continue;
    }
    for (const char* option = word + 1; *option != 0; ++option) {
      if (strchr("cmWX", *option) == nullptr) continue;
      const char* value = option[1] != 0 ? option + 1 : i + 1 < argc ? argv[++i] : "";
      if (*option == 'm') return kind_of_module(value);
      if (*option == 'c') return kind_of_command(value);
      break;
    }
  }
  return ProcessKind::kOrdinary;
}

}  // namespace lull
