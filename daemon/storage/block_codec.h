// Events as bytes: columns of varints, compressed with zstd. Four or five bytes an
// event in practice, where the plain struct has 64.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "daemon/aggregate/event.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace lull::storage {

// Runs longer than this are stored as several blocks.
inline constexpr size_t kMaxBlockEvents = 8192;

// Keeps its buffers and contexts between calls. Not thread-safe.
class BlockEncoder {
 public:
  BlockEncoder();
  ~BlockEncoder();
  BlockEncoder(const BlockEncoder&) = delete;
  BlockEncoder& operator=(const BlockEncoder&) = delete;

  // The view is valid until the next call.
  std::string_view Encode(const aggregate::Event* events, size_t count);

 private:
  std::string_view Pack();

  ZSTD_CCtx_s* context_;
  std::string plain_;
  std::string high_;                // of the column at hand
  std::vector<size_t> plane_ends_;  // in plain_
  std::string packed_;
};

class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();
  BlockDecoder(const BlockDecoder&) = delete;
  BlockDecoder& operator=(const BlockDecoder&) = delete;

  // Appends to `events`. DATA_LOSS for bytes that no encoder made.
  absl::Status Decode(std::string_view block, std::vector<aggregate::Event>* events);

 private:
  ZSTD_DCtx_s* context_;
  std::string plain_;
};

}  // namespace lull::storage
