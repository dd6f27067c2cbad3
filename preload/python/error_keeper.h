// Puts an exception that is already set aside, and back at the end. With the GIL.
#pragma once

#include "preload/python/api.h"

namespace lull {

class ErrorKeeper {
 public:
  explicit ErrorKeeper(const PythonApi* api) : api_(api) {
    set_ = api->error_occurred() != nullptr;
    if (set_) api->error_fetch(&type_, &value_, &traceback_);
  }
  ~ErrorKeeper() {
    if (api_->error_occurred() != nullptr) api_->error_clear();
    if (set_) api_->error_restore(type_, value_, traceback_);
  }
  ErrorKeeper(const ErrorKeeper&) = delete;
  ErrorKeeper& operator=(const ErrorKeeper&) = delete;

 private:
  const PythonApi* api_;
  bool set_;
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

}  // namespace lull
