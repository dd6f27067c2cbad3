// What the relay and its symbol readers say to each other (symbol_reader.h), over a
// socket that keeps packets apart. Both are this executable, but a reader works on
// files that the target's user wrote, and may have been taken over by one: an answer is
// untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/elf_module.h"

namespace lull::relay {

struct SymbolRequest {
  enum class Kind : uint32_t {
    kPrepare = 1,  // read this file when there is time; answered by a notice
    kResolve = 2,  // answered
    // Answered: the lines around line `offset` of a source file. Its path follows; the
    // descriptor is the file, or the folder below which the path leads to it.
    kSource = 3,
  };
  Kind kind = Kind::kResolve;
  uint32_t module =
      0;  // a number of the relay's; its file comes with the first request
  uint64_t number = 0;        // of the request, from 1
  uint64_t offset = 0;        // in the file
  uint64_t not_after_ns = 0;  // kSource: a file that changed later is not read
};

struct SymbolAnswer {
  uint64_t number =
      0;  // 0: a notice that `module` has been read; kReadyModule: it is up
  uint32_t module = 0;
  bool is_elf = false;   // else nothing else is known
  uint64_t address = 0;  // the file's own, of the offset; the offset where it has none
  // Innermost first. Of kSource: the lines, as functions.
  std::vector<NativeFrame> frames;
};

inline constexpr uint32_t kReadyModule = UINT32_MAX;
inline constexpr size_t kMaxSymbolAnswer = 128 << 10;
inline constexpr size_t kMaxSymbolFrames = 64;
inline constexpr size_t kMaxSymbolText = 4096;

// Cuts names that are too long and leaves out the outermost frames for which there is
// no room.
std::string EncodeSymbolAnswer(const SymbolAnswer& answer);
// False unless the bytes are one answer within the limits, and nothing else. Names are
// any bytes.
bool DecodeSymbolAnswer(std::string_view bytes, SymbolAnswer* answer);

enum class SymbolIo { kDone, kWouldBlock, kClosed };

// `file`: -1 = none. Never blocks.
SymbolIo SendSymbolRequest(int socket, const SymbolRequest& request, int file,
                           std::string_view path = {});
// Blocks.
SymbolIo ReceiveSymbolRequest(int socket, SymbolRequest* request, UniqueFd* file,
                              std::string* path);

}  // namespace lull::relay
