#include "daemon/collector/serve/unknown_calls.h"

#include "absl/strings/str_cat.h"

namespace lull::collector {
namespace {

class Refusal : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownCalls::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return new Refusal(
      {grpc::StatusCode::UNIMPLEMENTED,
       absl::StrCat("this lulld does not know ", context->method().substr(0, 200),
                    "; use lull and lulld of the same release (lull --version)")});
}

}  // namespace lull::collector
