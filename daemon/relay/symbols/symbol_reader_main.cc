#include "daemon/relay/symbols/symbol_reader_main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "daemon/relay/symbols/opened_modules.h"
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

bool Answer(const SymbolRequest& request, UniqueFd file, OpenedModules* modules) {
  AllowCpu(kCpuSeconds);
  if (file) modules->Add(request.module, std::move(file));
  if (request.kind == SymbolRequest::Kind::kPrepare) {
    modules->Prepare(request.module);
    return true;
  }
  std::string bytes = EncodeSymbolAnswer(Resolve(request, modules));
  return send(kSymbolReaderFd, bytes.data(), bytes.size(), MSG_NOSIGNAL) >= 0;
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
  if (!GiveUpRights(uid, gid)) return 1;
  OpenedModules modules(open, Notify);
  ForkNoMore();
  Notify(kReadyModule);
  SymbolRequest request;
  UniqueFd file;
  SymbolIo got;
  while ((got = ReceiveSymbolRequest(kSymbolReaderFd, &request, &file)) !=
         SymbolIo::kClosed) {
    if (got == SymbolIo::kDone && !Answer(request, std::move(file), &modules)) break;
  }
  _exit(0);  // a file that is being read is not waited for
}

}  // namespace lull::relay
