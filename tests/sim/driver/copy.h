// Copies and memsets: which direction, which of them block the host, for how long.
#pragma once

#include "tests/sim/driver/api.h"

namespace lull::sim {

// `height` rows of `width` bytes, in `depth` slices; a plain copy has one row.
// Slices are `pitch * rows` bytes apart.
struct CopyShape {
  DevicePtr dst = 0, src = 0;
  size_t width = 0, height = 1, depth = 1;
  size_t dst_pitch = 0, src_pitch = 0;
  size_t dst_rows = 0, src_rows = 0;
};

// cudaMemcpy and cudaMemcpyAsync, with the documented synchronisation:
//   to the host        blocks until done; async only into pinned memory
//   from pageable      waits for the stream, then until the bytes are staged;
//                      async copies of up to stage_kib are staged at once
//   from pinned        blocks until done; async does not
//   device to device   never blocks
//   host to host       always on the host
int copy(Engine* engine, const CopyShape& shape, void* stream, DefaultStream null,
         bool blocking);

// CUDA_MEMCPY3D as a shape.
CopyShape cuboid(const Copy3d& c);
// The operation that a copy is. With the engine's lock held.
int describe(Engine* engine, const CopyShape& shape, OpSpec* spec);

// `count` elements of `element` bytes; rows like a copy's. Blocks only if the
// target is pinned host memory and the call is not asynchronous.
struct SetShape {
  DevicePtr dst = 0;
  uint32_t value = 0;
  size_t element = 1;
  size_t width = 0, height = 1;  // width in elements
  size_t pitch = 0;
};
int set(Engine* engine, const SetShape& shape, void* stream, DefaultStream null,
        bool blocking);
int describe(Engine* engine, const SetShape& shape, OpSpec* spec);

}  // namespace lull::sim
