// Answers calls that this collector does not know. They come from a CLI or relay of
// another version.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

namespace lull::collector {

// UNIMPLEMENTED, with a sentence that says what to do. Needs no token: it tells
// nothing.
class UnknownCalls : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
};

}  // namespace lull::collector
