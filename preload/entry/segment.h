// Makes the shared-memory segment of this process (abi/segment.h).
#pragma once

#include "preload/abi/segment.h"

namespace lull {

struct NewSegment {
  char* base;  // nullptr: could not be made
  int fd;      // close after the handshake
};

// A sealed memfd, mapped, with header and default control block in place. Fails
// without memory, descriptors, or a file size limit that allows it (growing a file
// beyond RLIMIT_FSIZE would send the target SIGXFSZ).
NewSegment create_segment();

// Unmaps and closes what create_segment() made.
void discard_segment(const NewSegment& segment);

}  // namespace lull
