// The functions of CPython that the shim calls, found with dlsym. All of them are
// exported by every CPython from 3.8 on, the ones marked apart.
#pragma once

#include <cstdint>

namespace lull {

struct PyObject;  // never looked into here; see stacks/layouts/

using PyCFunction = PyObject* (*)(PyObject* self, PyObject* args);

// PyMethodDef, as in methodobject.h.
struct PythonMethod {
  const char* name;
  PyCFunction function;
  int flags;
  const char* documentation;
};
inline constexpr int kMethVarargs = 1;  // METH_VARARGS

struct PythonApi {
  // Safe on any thread, with or without the GIL.
  int (*is_initialized)();
  int (*is_finalizing)();        // Py_IsFinalizing (3.13+) or _Py_IsFinalizing
  void* (*this_thread_state)();  // PyGILState_GetThisThreadState
  // The thread state that holds the GIL; from 3.12 on nullptr unless it is this
  // thread's. PyThreadState_GetUnchecked (3.13+) or _PyThreadState_UncheckedGet; may
  // be nullptr.
  void* (*running_thread_state)();
  int (*add_pending_call)(int (*)(void*), void*);  // see pending_call.h
  const char* (*get_version)();
  PyObject* code_type;  // &PyCode_Type
  PyObject* str_type;   // &PyUnicode_Type
  PyObject* none;       // &_Py_NoneStruct
  const void* runtime;  // &_PyRuntime, or nullptr

  // With the GIL only.
  PyObject* (*import_level)(const char*, PyObject*, PyObject*, PyObject*, int);
  PyObject* (*module_dict)();  // sys.modules, borrowed
  PyObject* (*get_attribute)(PyObject*, const char*);
  PyObject* (*call)(PyObject*, ...);  // arguments, then nullptr
  PyObject* (*new_function)(PythonMethod*, PyObject*, PyObject*);
  int (*list_append)(PyObject*, PyObject*);
  intptr_t (*list_size)(PyObject*);
  PyObject* (*list_get)(PyObject*, intptr_t);  // borrowed
  int (*list_set_slice)(PyObject*, intptr_t, intptr_t, PyObject*);
  PyObject* (*tuple_get)(PyObject*, intptr_t);
  intptr_t (*tuple_size)(PyObject*);
  PyObject* (*dict_get)(PyObject*, const char*);
  int (*is_instance)(PyObject*, PyObject*);
  int (*compare_ascii)(PyObject*, const char*);
  long (*as_long)(PyObject*);
  const char* (*as_utf8)(PyObject*);  // a str's own text
  void (*incref)(PyObject*);
  void (*decref)(PyObject*);
  PyObject* (*error_occurred)();
  void (*error_clear)();
  void (*error_fetch)(PyObject**, PyObject**, PyObject**);
  void (*error_restore)(PyObject*, PyObject*, PyObject*);
  void* (*main_interpreter)();
  void* (*this_interpreter)();  // nullptr in 3.8, which calls it otherwise

  uint16_t minor;  // 8 for CPython 3.8
};

// The table, or nullptr while python_find() has not found an interpreter. Once
// found it stays: nothing here is ever unloaded.
const PythonApi* python_api();

// Which Python this is, and what became of the GC hook, into the segment's header.
// Cold, whenever a segment is new.
void python_describe(char* segment);

}  // namespace lull
