#include "tests/sim/runtime/api.h"

namespace lull::sim {

RuntimeThread& runtime_thread() {
  thread_local RuntimeThread state;
  return state;
}

RuntimeCall::RuntimeCall(const char* name, NameCache* cache) : driver_(load_driver()) {
  if (driver_ == nullptr) {
    error_ = runtime_thread().last_error = kInsufficientDriver;
    return;
  }
  // Cheap after the first time, and tells a fork child that it has no device.
  static thread_local bool initialised = false;
  if (!initialised) {
    error_ = driver_->start();
    initialised = error_ == 0;
  }
  driver_->begin_api(&frame_, name, cache);
  if (error_ != 0) runtime_thread().last_error = result_ = error_;
}

RuntimeCall::~RuntimeCall() {
  if (driver_ != nullptr) driver_->end_api(&frame_, result_);
}

int RuntimeCall::done(int result) {
  if (result != 0 && result != kNotReady) runtime_thread().last_error = result;
  return result_ = result;
}

int RuntimeCall::bind_context() {
  RuntimeThread& thread = runtime_thread();
  if (thread.bound) return kSuccess;
  void* context = nullptr;
  int error = driver_->cuCtxGetCurrent(&context);
  if (error == 0 && context == nullptr) {
    error = driver_->cuDevicePrimaryCtxRetain(&context, thread.device);
    if (error == 0) error = driver_->cuCtxSetCurrent(context);
  }
  thread.bound = error == 0;
  return error;
}

}  // namespace lull::sim
