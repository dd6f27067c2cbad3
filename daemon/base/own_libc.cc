#include "daemon/base/own_libc.h"

#include <nss.h>
#include <openssl/crypto.h>

namespace lull {

void KeepToOwnLibc() {
  __nss_configure_lookup("passwd", "files");
  __nss_configure_lookup("hosts", "files dns");
  __nss_configure_lookup("services", "files");
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

}  // namespace lull
