#include "tests/sim/driver/copy.h"

using namespace lull::sim;

namespace {

CopyShape line(DevicePtr dst, DevicePtr src, size_t bytes) {
  CopyShape shape;
  shape.dst = dst;
  shape.src = src;
  shape.width = bytes;
  return shape;
}

// Memory type 1 means the host pointer, 3 the array; the others the device's.
DevicePtr place(unsigned type, const void* host, DevicePtr device, const void* array) {
  return type == 1 ? as_device(host) : type == 3 ? as_device(array) : device;
}

CopyShape rectangle(const Copy2d& c) {
  CopyShape shape;
  shape.width = c.width;
  shape.height = c.height;
  shape.dst_pitch = c.dst_pitch != 0 ? c.dst_pitch : c.width;
  shape.src_pitch = c.src_pitch != 0 ? c.src_pitch : c.width;
  shape.dst = place(c.dst_type, c.dst_host, c.dst_device, c.dst_array) + c.dst_x +
              c.dst_y * shape.dst_pitch;
  shape.src = place(c.src_type, c.src_host, c.src_device, c.src_array) + c.src_x +
              c.src_y * shape.src_pitch;
  return shape;
}

SetShape row(DevicePtr dst, uint32_t value, size_t element, size_t count) {
  SetShape shape;
  shape.dst = dst;
  shape.value = value;
  shape.element = element;
  shape.width = count;
  return shape;
}

}  // namespace

namespace lull::sim {

CopyShape cuboid(const Copy3d& c) {
  CopyShape shape;
  shape.width = c.width;
  shape.height = c.height;
  shape.depth = c.depth;
  shape.dst_pitch = c.dst_pitch != 0 ? c.dst_pitch : c.width;
  shape.src_pitch = c.src_pitch != 0 ? c.src_pitch : c.width;
  shape.dst_rows = c.dst_height != 0 ? c.dst_height : c.height;
  shape.src_rows = c.src_height != 0 ? c.src_height : c.height;
  shape.dst = place(c.dst_type, c.dst_host, c.dst_device, c.dst_array) + c.dst_x +
              (c.dst_z * shape.dst_rows + c.dst_y) * shape.dst_pitch;
  shape.src = place(c.src_type, c.src_host, c.src_device, c.src_array) + c.src_x +
              (c.src_z * shape.src_rows + c.src_y) * shape.src_pitch;
  return shape;
}

}  // namespace lull::sim

SIM_STREAM_API(cuMemcpy, _ptds, (DevicePtr dst, DevicePtr src, size_t n),
               return call.done(copy(engine, line(dst, src, n), nullptr, kNull, true));)
SIM_STREAM_API(cuMemcpyHtoD_v2, _ptds, (DevicePtr dst, const void* src, size_t n),
               return call.done(copy(engine, line(dst, as_device(src), n), nullptr,
                                     kNull, true));)
SIM_STREAM_API(cuMemcpyDtoH_v2, _ptds, (void* dst, DevicePtr src, size_t n),
               return call.done(copy(engine, line(as_device(dst), src, n), nullptr,
                                     kNull, true));)
SIM_STREAM_API(cuMemcpyDtoD_v2, _ptds, (DevicePtr dst, DevicePtr src, size_t n),
               return call.done(copy(engine, line(dst, src, n), nullptr, kNull, true));)
SIM_STREAM_API(cuMemcpyPeer, _ptds,
               (DevicePtr dst, void*, DevicePtr src, void*, size_t n),
               return call.done(copy(engine, line(dst, src, n), nullptr, kNull, true));)
SIM_STREAM_API(cuMemcpy2D_v2, _ptds, (const Copy2d* c),
               return call.done(copy(engine, rectangle(*c), nullptr, kNull, true));)
SIM_STREAM_API(cuMemcpy3D_v2, _ptds, (const Copy3d* c),
               return call.done(copy(engine, cuboid(*c), nullptr, kNull, true));)

SIM_STREAM_API(cuMemcpyAsync, _ptsz,
               (DevicePtr dst, DevicePtr src, size_t n, void* stream),
               return call.done(copy(engine, line(dst, src, n), stream, kNull, false));)
SIM_STREAM_API(cuMemcpyHtoDAsync_v2, _ptsz,
               (DevicePtr dst, const void* src, size_t n, void* stream),
               return call.done(copy(engine, line(dst, as_device(src), n), stream,
                                     kNull, false));)
SIM_STREAM_API(cuMemcpyDtoHAsync_v2, _ptsz,
               (void* dst, DevicePtr src, size_t n, void* stream),
               return call.done(copy(engine, line(as_device(dst), src, n), stream,
                                     kNull, false));)
SIM_STREAM_API(cuMemcpyDtoDAsync_v2, _ptsz,
               (DevicePtr dst, DevicePtr src, size_t n, void* stream),
               return call.done(copy(engine, line(dst, src, n), stream, kNull, false));)
SIM_STREAM_API(cuMemcpyPeerAsync, _ptsz,
               (DevicePtr dst, void*, DevicePtr src, void*, size_t n, void* stream),
               return call.done(copy(engine, line(dst, src, n), stream, kNull, false));)
SIM_STREAM_API(cuMemcpy2DAsync_v2, _ptsz, (const Copy2d* c, void* stream),
               return call.done(copy(engine, rectangle(*c), stream, kNull, false));)
SIM_STREAM_API(cuMemcpy3DAsync_v2, _ptsz, (const Copy3d* c, void* stream),
               return call.done(copy(engine, cuboid(*c), stream, kNull, false));)

SIM_STREAM_API(cuMemsetD8_v2, _ptds, (DevicePtr dst, unsigned char value, size_t n),
               return call.done(set(engine, row(dst, value, 1, n), nullptr, kNull,
                                    true));)
SIM_STREAM_API(cuMemsetD16_v2, _ptds, (DevicePtr dst, unsigned short value, size_t n),
               return call.done(set(engine, row(dst, value, 2, n), nullptr, kNull,
                                    true));)
SIM_STREAM_API(cuMemsetD32_v2, _ptds, (DevicePtr dst, unsigned value, size_t n),
               return call.done(set(engine, row(dst, value, 4, n), nullptr, kNull,
                                    true));)
SIM_STREAM_API(cuMemsetD8Async, _ptsz,
               (DevicePtr dst, unsigned char value, size_t n, void* stream),
               return call.done(set(engine, row(dst, value, 1, n), stream, kNull,
                                    false));)
SIM_STREAM_API(cuMemsetD16Async, _ptsz,
               (DevicePtr dst, unsigned short value, size_t n, void* stream),
               return call.done(set(engine, row(dst, value, 2, n), stream, kNull,
                                    false));)
SIM_STREAM_API(cuMemsetD32Async, _ptsz,
               (DevicePtr dst, unsigned value, size_t n, void* stream),
               return call.done(set(engine, row(dst, value, 4, n), stream, kNull,
                                    false));)

SIM_STREAM_API(cuMemsetD2D8_v2, _ptds,
               (DevicePtr dst, size_t pitch, unsigned char value, size_t width,
                size_t height),
               {
                 SetShape shape = row(dst, value, 1, width);
                 shape.height = height;
                 shape.pitch = pitch;
                 return call.done(set(engine, shape, nullptr, kNull, true));
               })
SIM_STREAM_API(cuMemsetD2D8Async, _ptsz,
               (DevicePtr dst, size_t pitch, unsigned char value, size_t width,
                size_t height, void* stream),
               {
                 SetShape shape = row(dst, value, 1, width);
                 shape.height = height;
                 shape.pitch = pitch;
                 return call.done(set(engine, shape, stream, kNull, false));
               })
