// Makes the shared-memory segment of this process (abi/segment.h).
#pragma once

#include "preload/abi/segment.h"
#include "preload/support/descriptor.h"

namespace lull {

struct NewSegment {
  char* base;        // nullptr: could not be made
  int fd;            // close after the handshake
  FileId file = {};  // that fd is of, as long as the program leaves it alone
};

// A sealed memfd, mapped, with header and default control block in place, and memory
// behind these two. Fails without memory, descriptors, or a file size limit that allows
// it (growing a file beyond RLIMIT_FSIZE would send the target SIGXFSZ). in_place_of:
// nullptr, or an earlier segment that is replaced in one step, so that the place is
// never without memory.
NewSegment create_segment(char* in_place_of);

// Puts memory of no meaning in a segment's place, untouched: the segment's own goes
// with the relay, and a thread that is still on its way out finds something. Where
// there is none to be had the segment's own stays.
void abandon_segment(char* base);

// Closes what create_segment() made. Others may write there for as long as it likes
// them if it was in another's place: then memory of no meaning is left.
void discard_segment(const NewSegment& segment, char* in_place_of);

}  // namespace lull
