#include "daemon/storage/block_codec.h"

#include <zstd.h>

#include <algorithm>

#include "daemon/storage/varint.h"

namespace lull::storage {
namespace {

using aggregate::Event;

// Level 1 packs 300 MB/s, which is 10 M events/s; level 3 saves 4 % and takes twice
// the time.
constexpr int kLevel = 1;
// Varints of one event take at most this much in all columns together.
constexpr size_t kMaxPlainBytes = kMaxBlockEvents * 10 * 10 + 1024;

enum class Coding { kValues, kDifferences };

// Calls visit(get, set, coding) for each column that is stored value by value, in the
// order of the format.
template <typename Visitor>
void ForEachColumn(Visitor&& visit) {
  constexpr Coding kValues = Coding::kValues;
  visit([](const Event& e) { return uint64_t{e.series}; },
        [](Event& e, uint64_t v) { e.series = static_cast<uint32_t>(v); }, kValues);
  visit([](const Event& e) { return e.duration_ns; },
        [](Event& e, uint64_t v) { e.duration_ns = v; }, kValues);
  visit([](const Event& e) { return uint64_t{e.flags}; },
        [](Event& e, uint64_t v) { e.flags = static_cast<uint32_t>(v); }, kValues);
  visit([](const Event& e) { return e.arg0; }, [](Event& e, uint64_t v) { e.arg0 = v; },
        kValues);
  visit([](const Event& e) { return e.arg1; }, [](Event& e, uint64_t v) { e.arg1 = v; },
        kValues);
  // GPU events have a correlation id there, which grows from one to the next; others a
  // small constant.
  visit([](const Event& e) { return uint64_t{e.arg2}; },
        [](Event& e, uint64_t v) { e.arg2 = static_cast<uint32_t>(v); },
        Coding::kDifferences);
  visit([](const Event& e) { return uint64_t{e.tid}; },
        [](Event& e, uint64_t v) { e.tid = static_cast<uint32_t>(v); }, kValues);
  visit([](const Event& e) { return uint64_t{e.released_series}; },
        [](Event& e, uint64_t v) { e.released_series = static_cast<uint32_t>(v); },
        kValues);
  visit([](const Event& e) { return e.released_bytes; },
        [](Event& e, uint64_t v) { e.released_bytes = v; }, kValues);
}

absl::Status Corrupt() {
  return absl::DataLossError("a stored block of events is corrupt");
}

bool DecodeColumns(std::string_view in, std::vector<Event>& events) {
  uint64_t count = 0;
  if (!TakeVarint(in, count) || count > kMaxBlockEvents) return false;
  size_t before = events.size();
  events.resize(before + count);
  Event* first = events.data() + before;
  bool ok = true;
  uint64_t start = 0;
  for (size_t i = 0; i < count && ok; ++i) {
    uint64_t delta = 0;
    ok = TakeVarint(in, delta);
    start += static_cast<uint64_t>(UnZigZag(delta));
    first[i].start_ns = start;
  }
  // A column starts with the number of its values, or with 0 and the one value that
  // all of them have.
  ForEachColumn([&](auto, auto set, Coding coding) {
    uint64_t values = 0;
    uint64_t value = 0;
    ok = ok && TakeVarint(in, values) && (values == 0 || values == count);
    if (ok && values == 0) ok = TakeVarint(in, value);
    for (size_t i = 0; i < count && ok; ++i) {
      uint64_t read = 0;
      if (values != 0) {
        ok = TakeVarint(in, read);
        value = coding == Coding::kValues
                    ? read
                    : value + static_cast<uint64_t>(UnZigZag(read));
      }
      set(first[i], value);
    }
  });
  return ok && in.empty();
}

}  // namespace

BlockEncoder::BlockEncoder() : context_(ZSTD_createCCtx()) {
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
}
BlockEncoder::~BlockEncoder() { ZSTD_freeCCtx(context_); }

std::string_view BlockEncoder::Encode(const Event* events, size_t count) {
  plain_.clear();
  PutVarint(plain_, count);
  uint64_t previous = 0;
  for (size_t i = 0; i < count; ++i) {
    PutVarint(plain_, ZigZag(static_cast<int64_t>(events[i].start_ns - previous)));
    previous = events[i].start_ns;
  }
  ForEachColumn([&](auto get, auto, Coding coding) {
    uint64_t value = count > 0 ? get(events[0]) : 0;
    bool same = std::all_of(events, events + count,
                            [&](const Event& e) { return get(e) == value; });
    PutVarint(plain_, same ? 0 : count);
    if (same) return PutVarint(plain_, value);
    uint64_t before = 0;
    for (size_t i = 0; i < count; ++i) {
      uint64_t now = get(events[i]);
      PutVarint(plain_, coding == Coding::kValues
                            ? now
                            : ZigZag(static_cast<int64_t>(now - before)));
      before = now;
    }
  });
  packed_.resize(ZSTD_compressBound(plain_.size()));
  size_t size = ZSTD_compress2(context_, packed_.data(), packed_.size(), plain_.data(),
                               plain_.size());
  return {packed_.data(), size};
}

BlockDecoder::BlockDecoder() : context_(ZSTD_createDCtx()) {}
BlockDecoder::~BlockDecoder() { ZSTD_freeDCtx(context_); }

absl::Status BlockDecoder::Decode(std::string_view block, std::vector<Event>& events) {
  uint64_t size = ZSTD_getFrameContentSize(block.data(), block.size());
  if (size > kMaxPlainBytes) return Corrupt();  // also its two error values
  plain_.resize(size);
  size_t got = ZSTD_decompressDCtx(context_, plain_.data(), plain_.size(), block.data(),
                                   block.size());
  if (ZSTD_isError(got) || got != size) return Corrupt();
  size_t before = events.size();
  if (!DecodeColumns(plain_, events)) {
    events.resize(before);
    return Corrupt();
  }
  return absl::OkStatus();
}

}  // namespace lull::storage
