// What an executable with a libc of its own must do first.
#pragma once

namespace lull {

// Keeps libc and the libraries linked in from loading what the image has of theirs,
// which belongs to another libc: names of users and hosts come from /etc and DNS alone,
// whatever /etc/nsswitch.conf lists, and OpenSSL reads no configuration, which may name
// engines (no_dlopen.cc sees to the rest). First in main(), before there are threads.
// Opens no descriptor.
void KeepToOwnLibc();

}  // namespace lull
