// Finding CPython in this process: in the executable, in a library of the global
// scope, or in a libpython that something loaded for itself alone.
#include <string.h>

#include <atomic>

#include "preload/python/api.h"
#include "preload/python/python.h"
#include "preload/stacks/python_layout.h"
#include "preload/support/decimal.h"
#include "preload/support/libdl.h"

namespace lull {
namespace {

PythonApi g_api;
std::atomic<const PythonApi*> g_found{nullptr};

enum class Search : int { kIdle, kBusy };
std::atomic<Search> g_search{Search::kIdle};

struct Library {
  char path[4096];
};

int is_libpython(dl_phdr_info* info, size_t, void* out) {
  const char* name = strrchr(info->dlpi_name, '/');
  name = name == nullptr ? info->dlpi_name : name + 1;
  // "libpython3.11.so.1.0", not the stub "libpython3.so".
  if (strncmp(name, "libpython3.", 11) != 0 || name[11] < '0' || name[11] > '9') {
    return 0;
  }
  auto* library = static_cast<Library*>(out);
  size_t length = strlen(info->dlpi_name);
  if (length >= sizeof library->path) return 0;
  memcpy(library->path, info->dlpi_name, length + 1);
  return 1;
}

// True with the handle whose scope has the interpreter. A handle of libpython is
// kept for good: our pointers into it must not dangle.
bool find_scope(libdl::Dlsym real_dlsym, void** scope) {
  *scope = RTLD_DEFAULT;
  if (real_dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr) return true;
  Library library;
  if (dl_iterate_phdr(is_libpython, &library) == 0) return false;
  *scope = libdl::open(library.path, RTLD_LAZY | RTLD_NOLOAD);
  return *scope != nullptr;
}

// Looks symbols up and remembers whether all were there.
class Resolver {
 public:
  Resolver(libdl::Dlsym real_dlsym, void* scope)
      : real_dlsym_(real_dlsym), scope_(scope) {}

  template <typename T>
  void required(T& slot, const char* name) {
    optional(slot, name);
    if (slot == nullptr) complete_ = false;
  }
  template <typename T>
  void optional(T& slot, const char* name) {
    slot = reinterpret_cast<T>(real_dlsym_(scope_, name));
  }
  bool complete() const { return complete_; }

 private:
  libdl::Dlsym real_dlsym_;
  void* scope_;
  bool complete_ = true;
};

bool resolve(libdl::Dlsym real_dlsym, void* scope, PythonApi* api) {
  Resolver look_up(real_dlsym, scope);
  look_up.required(api->is_initialized, "Py_IsInitialized");
  look_up.optional(api->is_finalizing, "Py_IsFinalizing");
  if (api->is_finalizing == nullptr) {
    look_up.required(api->is_finalizing, "_Py_IsFinalizing");
  }
  look_up.required(api->this_thread_state, "PyGILState_GetThisThreadState");
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
  look_up.required(api->incref, "Py_IncRef");
  look_up.required(api->decref, "Py_DecRef");
  look_up.required(api->error_occurred, "PyErr_Occurred");
  look_up.required(api->error_clear, "PyErr_Clear");
  look_up.required(api->error_fetch, "PyErr_Fetch");
  look_up.required(api->error_restore, "PyErr_Restore");
  look_up.required(api->main_interpreter, "PyInterpreterState_Main");
  look_up.optional(api->this_interpreter, "PyInterpreterState_Get");
  return look_up.complete();
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
  libdl::Dlsym real_dlsym = libdl::real_dlsym();
  void* scope;
  bool found = real_dlsym != nullptr && find_scope(real_dlsym, &scope) &&
               resolve(real_dlsym, scope, &g_api);
  if (found) {
    g_api.minor = minor_of(g_api.get_version());
    found = g_api.minor != 0;
  }
  if (found) python_layout_prepare(&g_api);
  // Pairs with the acquire in python_api(): the table is complete.
  if (found) g_found.store(&g_api, std::memory_order_release);
  g_search.store(Search::kIdle, std::memory_order_release);
  return found;
}

const PythonApi* python_api() { return g_found.load(std::memory_order_acquire); }

}  // namespace lull
