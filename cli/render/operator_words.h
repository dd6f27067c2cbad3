// The pass that an operator worked for, as reports and JSON have it.
#pragma once

#include "query.pb.h"

namespace lull {

inline const char* OperatorPassKey(v1::OperatorPass pass) {
  switch (pass) {
    case v1::OPERATOR_PASS_FORWARD:
      return "forward";
    case v1::OPERATOR_PASS_BACKWARD:
      return "backward";
    case v1::OPERATOR_PASS_OPTIMIZER:
      return "optimizer";
    default:
      return "unknown";
  }
}

}  // namespace lull
