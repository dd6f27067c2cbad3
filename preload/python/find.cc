// Finding CPython in this process: in the executable, in a library of the global
// scope, or in a libpython that something loaded for itself alone.
#include <string.h>

#include <atomic>

#include "preload/python/api.h"
#include "preload/python/python.h"
#include "preload/stacks/python_layout.h"
#include "preload/support/decimal.h"
#include "preload/support/pins.h"
#include "preload/support/symbols.h"

namespace lull {
namespace {

PythonApi g_api;
std::atomic<const PythonApi*> g_found{nullptr};

enum class Search : int { kIdle, kBusy };
std::atomic<Search> g_search{Search::kIdle};

// Every symbol of the table, and where it goes.
class Table {
 public:
  template <typename T>
  void required(T& slot, const char* name) {
    static_assert(sizeof slot == sizeof(void*));
    add(&slot, name, true);
  }
  template <typename T>
  void optional(T& slot, const char* name) {
    static_assert(sizeof slot == sizeof(void*));
    add(&slot, name, false);
  }

  // One look at the loaded objects, without the loader's lock (support/symbols.h): a
  // process may begin to record on any thread. True if all that is required was there.
  bool find() {
    if (!find_symbols_with("Py_IsInitialized", symbols_, count_)) return false;
    bool complete = true;
    for (size_t i = 0; i < count_; ++i) {
      memcpy(slots_[i], &symbols_[i].address, sizeof symbols_[i].address);
      complete = complete && (symbols_[i].address != nullptr || !required_[i]);
    }
    return complete;
  }

 private:
  static constexpr size_t kMost = 48;

  void add(void* slot, const char* name, bool required) {
    symbols_[count_] = {name, nullptr};
    slots_[count_] = slot;
    required_[count_++] = required;
  }

  NextSymbol symbols_[kMost];
  void* slots_[kMost];
  bool required_[kMost];
  size_t count_ = 0;
};

bool resolve(PythonApi* api) {
  Table look_up;
  look_up.required(api->is_initialized, "Py_IsInitialized");
  look_up.optional(api->is_finalizing, "Py_IsFinalizing");
  int (*older_is_finalizing)() = nullptr;
  look_up.optional(older_is_finalizing, "_Py_IsFinalizing");
  look_up.required(api->this_thread_state, "PyGILState_GetThisThreadState");
  look_up.optional(api->running_thread_state, "PyThreadState_GetUnchecked");
  void* (*older_running_thread_state)() = nullptr;
  look_up.optional(older_running_thread_state, "_PyThreadState_UncheckedGet");
  look_up.required(api->add_pending_call, "Py_AddPendingCall");
  look_up.required(api->get_version, "Py_GetVersion");
  look_up.required(api->code_type, "PyCode_Type");
  look_up.required(api->str_type, "PyUnicode_Type");
  look_up.required(api->none, "_Py_NoneStruct");
  look_up.optional(api->runtime, "_PyRuntime");
  look_up.required(api->import_level, "PyImport_ImportModuleLevel");
  look_up.required(api->module_dict, "PyImport_GetModuleDict");
  look_up.required(api->call, "PyObject_CallFunctionObjArgs");
  look_up.required(api->get_attribute, "PyObject_GetAttrString");
  look_up.required(api->new_function, "PyCFunction_NewEx");
  look_up.required(api->list_append, "PyList_Append");
  look_up.required(api->list_size, "PyList_Size");
  look_up.required(api->list_get, "PyList_GetItem");
  look_up.required(api->list_set_slice, "PyList_SetSlice");
  look_up.required(api->tuple_get, "PyTuple_GetItem");
  look_up.required(api->tuple_size, "PyTuple_Size");
  look_up.required(api->dict_get, "PyDict_GetItemString");
  look_up.required(api->is_instance, "PyObject_IsInstance");
  look_up.required(api->compare_ascii, "PyUnicode_CompareWithASCIIString");
  look_up.required(api->as_long, "PyLong_AsLong");
  look_up.required(api->as_utf8, "PyUnicode_AsUTF8");
  look_up.required(api->incref, "Py_IncRef");
  look_up.required(api->decref, "Py_DecRef");
  look_up.required(api->error_occurred, "PyErr_Occurred");
  look_up.required(api->error_clear, "PyErr_Clear");
  look_up.required(api->error_fetch, "PyErr_Fetch");
  look_up.required(api->error_restore, "PyErr_Restore");
  look_up.required(api->main_interpreter, "PyInterpreterState_Main");
  look_up.optional(api->this_interpreter, "PyInterpreterState_Get");
  if (!look_up.find()) return false;
  if (api->is_finalizing == nullptr) api->is_finalizing = older_is_finalizing;
  if (api->running_thread_state == nullptr) {
    api->running_thread_state = older_running_thread_state;
  }
  return api->is_finalizing != nullptr;
}

// "3.11.7 (main, ...": 11, or 0 for anything but CPython 3.
uint16_t minor_of(const char* version) {
  if (strncmp(version, "3.", 2) != 0) return 0;
  version += 2;
  int minor = take_decimal(&version);
  return minor > 0 && minor < 256 ? static_cast<uint16_t>(minor) : 0;
}

}  // namespace

bool python_find() {
  if (g_found.load(std::memory_order_acquire) != nullptr) return true;
  Search idle = Search::kIdle;
  if (!g_search.compare_exchange_strong(idle, Search::kBusy)) return false;
  bool found = resolve(&g_api);
  if (found) {
    g_api.minor = minor_of(g_api.get_version());
    found = g_api.minor != 0;
  }
  if (found) python_layout_prepare(&g_api);
  if (found) pin_later(reinterpret_cast<const void*>(g_api.is_initialized));
  // Pairs with the acquire in python_api(): the table is complete.
  if (found) g_found.store(&g_api, std::memory_order_release);
  g_search.store(Search::kIdle, std::memory_order_release);
  return found;
}

const PythonApi* python_api() { return g_found.load(std::memory_order_acquire); }

}  // namespace lull
