#include "daemon/relay/symbols/symbol_reader_main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "daemon/base/thread.h"
#include "daemon/relay/symbols/opened_modules.h"
#include "daemon/relay/symbols/source_file.h"
#include "daemon/relay/symbols/symbol_protocol.h"
#include "daemon/relay/symbols/symbol_rights.h"

namespace lull::relay {
namespace {

constexpr unsigned kCpuSeconds = 120;  // between two requests

// The relay looks at what was read before it sends more; nothing waits for a notice.
void Notify(uint32_t module) {
  SymbolAnswer notice;
  notice.module = module;
  std::string bytes = EncodeSymbolAnswer(notice);
  send(kSymbolReaderFd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

SymbolAnswer Resolve(const SymbolRequest& request, OpenedModules* modules) {
  SymbolAnswer answer;
  answer.number = request.number;
  answer.module = request.module;
  answer.address = request.offset;
  const ElfModule* module = modules->Get(request.module);
  if (module == nullptr) return answer;
  answer.is_elf = true;
  if (module->VirtualAddress(request.offset, &answer.address)) {
    module->Resolve(answer.address, &answer.frames);
  }
  return answer;
}

// The file that was asked about last: the lines of one file are asked for together.
struct LastSource {
  uint32_t process = 0;
  std::string path;
  std::optional<std::string> text;
};

SymbolAnswer Quote(const SymbolRequest& request, UniqueFd file, const std::string& path,
                   LastSource* last) {
  SymbolAnswer answer;
  answer.number = request.number;
  answer.module = request.module;
  if (last->process != request.module || last->path != path) {
    struct stat info;
    if (file && fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode)) {
      file = OpenSource(file.get(), path);
    }
    *last = {request.module, path, ReadSource(file.get(), request.not_after_ns)};
  }
  if (!last->text) return answer;
  Excerpt excerpt = ExcerptAround(*last->text, static_cast<uint32_t>(request.offset));
  answer.is_elf = !excerpt.lines.empty();
  answer.address = excerpt.first_line;
  for (std::string& line : excerpt.lines) {
    answer.frames.emplace_back().function = std::move(line);
  }
  return answer;
}

bool Send(const SymbolAnswer& answer) {
  std::string bytes = EncodeSymbolAnswer(answer);
  return send(kSymbolReaderFd, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
}

bool Answer(const SymbolRequest& request, UniqueFd file, const std::string& path,
            OpenedModules* modules, LastSource* source) {
  AllowCpu(kCpuSeconds);
  if (request.kind == SymbolRequest::Kind::kSource) {
    return Send(Quote(request, std::move(file), path, source));
  }
  if (file) modules->Add(request.module, std::move(file));
  if (request.kind == SymbolRequest::Kind::kPrepare) {
    modules->Prepare(request.module);
    return true;
  }
  return Send(Resolve(request, modules));
}

}  // namespace

int SymbolReaderMain(int argc, char** argv, OpenModule open) {
  uint32_t uid = 0;
  uint32_t gid = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[2], &uid) ||
      !absl::SimpleAtoi(argv[3], &gid) || fcntl(kSymbolReaderFd, F_GETFD) < 0) {
    return 2;
  }
  syscall(SYS_close_range, kSymbolReaderFd + 1, ~0u, 0);
  YieldToOthers();
  if (!GiveUpRights(uid, gid)) return 1;
  OpenedModules modules(open, Notify);
  ForkNoMore();
  Notify(kReadyModule);
  SymbolRequest request;
  UniqueFd file;
  std::string path;
  LastSource source;
  SymbolIo got;
  while ((got = ReceiveSymbolRequest(kSymbolReaderFd, &request, &file, &path)) !=
         SymbolIo::kClosed) {
    if (got == SymbolIo::kDone &&
        !Answer(request, std::move(file), path, &modules, &source)) {
      break;
    }
  }
  _exit(0);  // a file that is being read is not waited for
}

}  // namespace lull::relay
