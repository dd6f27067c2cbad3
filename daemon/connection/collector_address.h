// Where a collector is, and how its host is known.
#pragma once

#include <string>

namespace lull {

struct CollectorAddress {
  std::string target;  // "unix:/path" or "host:port"
  std::string token;   // of who delivers events; "" = none
  std::string tls_ca;  // PEM file of the CA to trust; "" = no TLS
};

}  // namespace lull
