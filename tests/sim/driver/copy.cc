#include "tests/sim/driver/copy.h"

#include <cstring>

namespace lull::sim {
namespace {

void move_bytes(const CopyShape& s) {
  for (size_t z = 0; z < s.depth; ++z) {
    for (size_t y = 0; y < s.height; ++y) {
      std::memmove(as_pointer(s.dst + (z * s.dst_rows + y) * s.dst_pitch),
                   as_pointer(s.src + (z * s.src_rows + y) * s.src_pitch), s.width);
    }
  }
}

// What the host reads back when the values on the device mean nothing.
void clear_bytes(const CopyShape& s) {
  for (size_t z = 0; z < s.depth; ++z) {
    for (size_t y = 0; y < s.height; ++y) {
      std::memset(as_pointer(s.dst + (z * s.dst_rows + y) * s.dst_pitch), 0, s.width);
    }
  }
}

void set_bytes(const SetShape& s) {
  for (size_t y = 0; y < s.height; ++y) {
    DevicePtr row = s.dst + y * s.pitch;
    if (s.element == 1) {
      std::memset(as_pointer(row), static_cast<int>(s.value), s.width);
      continue;
    }
    for (size_t x = 0; x < s.width; ++x) {
      std::memcpy(as_pointer(row + x * s.element), &s.value, s.element);
    }
  }
}

struct Side {
  bool host;
  bool pageable;
  bool fits;  // `bytes` from the address on belong to the block
  uint32_t device;
};

Side side(Engine* engine, DevicePtr address, size_t bytes) {
  const Block* block = engine->memory.find(address);
  if (block == nullptr) return {true, true, true, 0};
  return {block->on_host(), false, address + bytes <= block->base + block->size,
          block->device};
}

CopyKind direction(Side dst, Side src) {
  if (src.host) return dst.host ? CopyKind::kH2H : CopyKind::kH2D;
  return dst.host ? CopyKind::kD2H : CopyKind::kD2D;
}

}  // namespace

int describe(Engine* engine, const CopyShape& shape, OpSpec* spec) {
  if (shape.dst == 0 || shape.src == 0) return kInvalidValue;
  Side dst = side(engine, shape.dst, shape.width);
  Side src = side(engine, shape.src, shape.width);
  if (!dst.fits || !src.fits) return kInvalidValue;
  spec->kind = OpKind::kCopy;
  spec->bytes = shape.width * shape.height * shape.depth;
  spec->handle = shape.dst;
  spec->copy = direction(dst, src);
  spec->pageable = dst.pageable || src.pageable;
  if (spec->copy == CopyKind::kD2D) spec->source_device = src.device;
  if (engine->config().data) spec->effect = [shape] { move_bytes(shape); };
  if (spec->copy == CopyKind::kD2H &&
      static_cast<int64_t>(spec->bytes) <= engine->config().zero_read_bytes) {
    spec->effect = [shape] { clear_bytes(shape); };
  }
  return kOk;
}

int copy(Engine* engine, const CopyShape& shape, void* handle, DefaultStream null,
         bool blocking) {
  size_t bytes = shape.width * shape.height * shape.depth;
  if (bytes == 0) return kOk;
  OpSpec spec;
  spec.asynchronous = !blocking;
  std::shared_ptr<Stream> stream;
  std::vector<OpPtr> before;  // what the host waits for first
  bool wait = blocking;
  {
    Lock lock(engine->mutex());
    stream = engine->stream(handle, null);
    if (stream == nullptr) return kInvalidHandle;
    if (int error = describe(engine, shape, &spec)) return error;
    bool capturing = stream->capture != nullptr;
    if (blocking && capturing) {
      stream->capture->invalid = true;
      return kCaptureUnsupported;
    }
    if (spec.copy == CopyKind::kD2D) wait = false;
    if (spec.copy == CopyKind::kH2H) wait = true;
    if (spec.copy == CopyKind::kD2H && spec.pageable) wait = true;
    if (spec.copy == CopyKind::kH2D && spec.pageable) {
      bool staged = static_cast<int64_t>(bytes) <= engine->config().stage_bytes;
      wait = blocking || !staged;
      if (wait) before = engine->unfinished(*stream);
    }
    if (capturing) before.clear();
  }
  engine->wait(before);
  OpPtr op;
  {
    Lock lock(engine->mutex());
    if (int error = engine->enqueue(stream, std::move(spec), &op)) return error;
  }
  if (wait) engine->wait({&op, 1});
  return kOk;
}

int describe(Engine* engine, const SetShape& shape, OpSpec* spec) {
  size_t bytes = shape.width * shape.height * shape.element;
  const Block* block = engine->memory.find(shape.dst);
  if (block == nullptr || shape.dst + bytes > block->base + block->size) {
    return kInvalidValue;
  }
  spec->kind = OpKind::kMemset;
  spec->bytes = bytes;
  spec->handle = shape.dst;
  spec->value = shape.value;
  if (engine->config().data) spec->effect = [shape] { set_bytes(shape); };
  return kOk;
}

int set(Engine* engine, const SetShape& shape, void* handle, DefaultStream null,
        bool blocking) {
  if (shape.width * shape.height * shape.element == 0) return kOk;
  OpPtr op;
  bool wait;
  {
    Lock lock(engine->mutex());
    auto stream = engine->stream(handle, null);
    if (stream == nullptr) return kInvalidHandle;
    OpSpec spec;
    spec.asynchronous = !blocking;
    if (int error = describe(engine, shape, &spec)) return error;
    wait = blocking && engine->memory.find(shape.dst)->on_host();
    if (int error = engine->enqueue(stream, std::move(spec), &op)) return error;
  }
  if (wait) engine->wait({&op, 1});
  return kOk;
}

}  // namespace lull::sim
