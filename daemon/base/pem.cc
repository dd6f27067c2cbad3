#include "daemon/base/pem.h"

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lull {
namespace {

constexpr const char* kSystemRoots[] = {"/etc/ssl/certs/ca-certificates.crt",
                                        "/etc/pki/tls/certs/ca-bundle.crt",
                                        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};

}  // namespace

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !absl::StrContains(text.str(), "-----BEGIN")) {
    return absl::NotFoundError(absl::StrCat(path, " cannot be read or is no PEM file"));
  }
  return text.str();
}

absl::StatusOr<std::string> ReadSystemRoots() {
  for (const char* path : kSystemRoots) {
    absl::StatusOr<std::string> roots = ReadPem(path);
    if (roots.ok()) return roots;
  }
  return absl::NotFoundError(
      "this host has no list of certificate authorities where lulld looks for one");
}

}  // namespace lull
