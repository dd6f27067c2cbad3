#include "daemon/relay/process/worker_main.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "daemon/base/descriptor_limit.h"
#include "daemon/base/logging.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/relay/process/channel.h"
#include "daemon/relay/process/worker.h"

namespace lull::relay {
namespace {

// The terminal belongs to the job: its ^C ends the job, and this process sees it by
// its targets' ends. A spool that may not grow (ulimit -f) is full.
void PrepareSignals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGXFSZ}) {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Whoever waits for the end of the job's output must not wait for this process, so
// it holds none of the standard streams.
void RedirectStreams(const std::string& log_path) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(log >= 0 ? log : null, STDERR_FILENO);
  if (log > STDERR_FILENO) close(log);
  if (null > STDERR_FILENO) close(null);
}

bool ReceiveOptions(int channel, RelayOptions* options) {
  pollfd entry{channel, POLLIN, 0};
  Message message;
  return poll(&entry, 1, 10'000) == 1 &&
         Receive(channel, &message) == ChannelResult::kDone &&
         message.kind == MessageKind::kOptions && DecodeOptions(message.body, options);
}

}  // namespace

int RelayWorkerMain() {
  PrepareSignals();
  UniqueFd channel(kChannelFd);
  UniqueFd listener(kListenFd);
  RelayOptions options;
  if (fcntl(kChannelFd, F_GETFD) < 0 || !ReceiveOptions(kChannelFd, &options)) {
    LogError("the relay worker is started by `lull run` and `lull relay` alone");
    return 2;
  }
  MakePrivateDirectory(options.spool_directory).IgnoreError();  // the worker says why
  RedirectStreams(options.spool_directory + "/relay.log");
  InitLogging("lull-relay");
  RaiseDescriptorLimit();
  return Worker(std::move(options), std::move(channel), std::move(listener)).Run();
}

}  // namespace lull::relay
