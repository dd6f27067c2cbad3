// What an executable with a libc of its own must do first.
#pragma once

namespace lull {

// Keeps libc and the libraries linked in from loading libraries of the image, which
// belong to another libc. Names of users and hosts come only from /etc and DNS,
// whatever /etc/nsswitch.conf lists. OpenSSL reads no configuration, as that may name
// engines (no_dlopen.cc does the rest). Call this first in main(), before there are
// threads. It opens no descriptor.
void KeepToOwnLibc();

}  // namespace lull
