#include "preload/python/torch_version.h"

#include "preload/support/decimal.h"

namespace lull {

TorchVersion torch_version(const PythonApi* api, PyObject* torch) {
  PyObject* version = api->get_attribute(torch, "__version__");
  if (version == nullptr) {
    api->error_clear();
    return {0, 0};
  }
  const char* text =
      api->is_instance(version, api->str_type) == 1 ? api->as_utf8(version) : nullptr;
  TorchVersion found = text != nullptr ? parse_torch_version(text) : TorchVersion{0, 0};
  if (api->error_occurred() != nullptr) api->error_clear();
  api->decref(version);
  return found;
}

TorchVersion parse_torch_version(const char* text) {
  const char* at = text;
  int major = take_decimal(&at);
  if (at == text || *at++ != '.') return {0, 0};
  const char* behind = at;
  int minor = take_decimal(&at);
  return at == behind ? TorchVersion{0, 0} : TorchVersion{major, minor};
}

}  // namespace lull
