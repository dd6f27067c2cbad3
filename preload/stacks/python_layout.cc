#include "preload/stacks/python_layout.h"

#include <pthread.h>
#include <string.h>

#include <atomic>

#include "preload/abi/segment.h"
#include "preload/ring/writer.h"
#include "preload/stacks/layouts/cpython_3_10.h"
#include "preload/stacks/layouts/cpython_3_11.h"
#include "preload/stacks/layouts/cpython_3_12.h"
#include "preload/stacks/layouts/cpython_3_8.h"
#include "preload/stacks/layouts/cpython_3_9.h"
#include "preload/stacks/layouts/debug_offsets.h"

namespace lull {
namespace {

CPythonLayout g_own_offsets;  // what 3.13+ says of itself
std::atomic<const CPythonLayout*> g_layout{nullptr};

const CPythonLayout* choose(const PythonApi* api) {
  switch (api->minor) {
    case 8:
      return &kCPython38;
    case 9:
      return &kCPython39;
    case 10:
      return &kCPython310;
    case 11:
      return &kCPython311;
    case 12:
      return &kCPython312;
    default:
      return api->runtime != nullptr &&
                     layout_from_debug_offsets(api->runtime, &g_own_offsets)
                 ? &g_own_offsets
                 : nullptr;
  }
}

}  // namespace

const CPythonLayout* python_layout() {
  return g_layout.load(std::memory_order_acquire);
}

void python_layout_prepare(const PythonApi* api) {
  // A PyPy answers to most of the names that we look for, and has no such frames.
  if (strstr(api->get_version(), "PyPy") != nullptr) return;
  // Release: pairs with the acquire in python_layout().
  g_layout.store(choose(api), std::memory_order_release);
}

bool python_describe_thread(abi::WorkerHello* hello) {
  const CPythonLayout* layout = python_layout();
  const PythonApi* api = python_api();
  if (layout == nullptr || api == nullptr || api->is_initialized() == 0 ||
      api->is_finalizing() != 0) {
    return false;
  }
  hello->layout = *layout;
  hello->code_type = reinterpret_cast<uint64_t>(api->code_type);
  hello->python_state = reinterpret_cast<uint64_t>(api->this_thread_state());
  hello->python_thread = static_cast<uint64_t>(pthread_self());
  return hello->python_state != 0;
}

void python_layout_show(char* segment) {
  const CPythonLayout* layout = python_layout();
  const PythonApi* api = python_api();
  if (layout == nullptr || api == nullptr) return;
  abi::SegmentHeader& header = abi::SegmentView(segment).header();
  header.python_layout = *layout;
  // Pairs with the relay's acquire: the layout is written.
  header.python_code_type.store(reinterpret_cast<uint64_t>(api->code_type),
                                std::memory_order_release);
  if (api->is_initialized() == 0 || api->is_finalizing() != 0) return;
  notice_python_state(reinterpret_cast<uintptr_t>(api->this_thread_state()));
}

}  // namespace lull
