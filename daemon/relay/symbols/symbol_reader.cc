#include "daemon/relay/symbols/symbol_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/relay/symbols/symbol_reader_main.h"

extern char** environ;

namespace lull::relay {
namespace {

constexpr uint32_t kMaxDeaths = 8;
constexpr uint64_t kLookMs = 500;  // at what a reader has used

// Nothing of ours that the target's user should not see.
std::vector<char*> ReaderEnvironment() {
  static char disable[] = "LULL_DISABLE=1";
  std::vector<char*> result = {disable};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    for (const char* name : {"LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "LSAN_OPTIONS=",
                             "TSAN_OPTIONS=", "UBSAN_OPTIONS="}) {
      if (absl::StartsWith(*entry, name)) result.push_back(*entry);
    }
  }
  result.push_back(nullptr);
  return result;
}

pid_t Spawn(int socket, uid_t uid, gid_t gid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&files, socket, kSymbolReaderFd);
  for (int fd = 0; fd < kSymbolReaderFd; ++fd) {
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  char program[] = "lull";
  std::string verb = kSymbolReaderVerb;
  std::string user = absl::StrCat(uid);
  std::string group = absl::StrCat(gid);
  char* arguments[] = {program, verb.data(), user.data(), group.data(), nullptr};
  std::vector<char*> environment = ReaderEnvironment();
  pid_t pid = -1;
  int error = posix_spawn(&pid, "/proc/self/exe", &files, &attributes, arguments,
                          environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  LogWarning(absl::StrCat("cannot start a symbol reader: ", strerror(error)));
  return -1;
}

uint64_t Ns(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_usec) * 1'000;
}

}  // namespace

bool SymbolReader::Ensure() {
  if (pid_ > 0) return true;
  if (unusable_) return false;
  unusable_ = deaths_ >= kMaxDeaths || !Start() || !AwaitReady();
  if (unusable_) {
    LogWarning(absl::StrCat("functions of programs and libraries of user ", uid_,
                            " have no names from here on: the process that reads "
                            "symbols cannot be started, or has died too often"));
    Kill();
  }
  if (gets_on_) gets_on_();
  return !unusable_;
}

bool SymbolReader::Start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  socket_.reset(ends[0]);
  UniqueFd other(ends[1]);
  ++generation_;
  pid_ = Spawn(other.get(), uid_, gid_);
  return pid_ > 0;
}

bool SymbolReader::AwaitReady() {
  Patience patience = NewPatience();
  SymbolAnswer answer;
  while (Wait(POLLIN, patience)) {
    Got got = Take(&answer);
    if (got == Got::kNotice) return answer.module == kReadyModule;
    if (got != Got::kNothing) return false;
  }
  return false;
}

bool SymbolReader::Prepare(uint32_t module, int file) {
  SymbolRequest request;
  request.kind = SymbolRequest::Kind::kPrepare;
  request.module = module;
  request.number = ++number_;
  if (SendSymbolRequest(socket_.get(), request, file) != SymbolIo::kDone) return false;
  prepared_.push_back(module);
  return true;
}

bool SymbolReader::Ask(const Question& question, uint64_t number) {
  SymbolRequest request;
  request.module = question.module;
  request.number = number;
  request.offset = question.offset;
  if (!question.path.empty()) request.kind = SymbolRequest::Kind::kSource;
  request.not_after_ns = question.not_after_ns;
  return SendSymbolRequest(socket_.get(), request, question.file.get(),
                           question.path) == SymbolIo::kDone;
}

void SymbolReader::Resolve(const std::vector<Question>& questions,
                           std::vector<SymbolAnswer>* answers) {
  size_t asked = 0;
  uint64_t first = number_ + 1;
  number_ += questions.size();
  Patience patience = NewPatience();
  for (size_t answered = 0; answered < questions.size();) {
    while (asked < questions.size() && Ask(questions[asked], first + asked)) ++asked;
    SymbolAnswer answer;
    // Where nothing could be asked there is no answer to wait for.
    Got got = Wait(asked > answered ? POLLIN : POLLIN | POLLOUT, patience)
                  ? Take(&answer)
                  : Got::kEnd;
    if (got == Got::kNotice || got == Got::kNothing) continue;
    if (got == Got::kEnd || answer.number != first + answered ||
        answer.module != questions[answered].module) {
      Kill();
      if (gets_on_) gets_on_();
      return;
    }
    answers->push_back(std::move(answer));
    ++answered;
    if (gets_on_) gets_on_();
    patience = NewPatience();
  }
}

bool SymbolReader::Look() {
  if (pid_ <= 0) return true;
  SymbolAnswer answer;
  Got got;
  while ((got = Take(&answer)) == Got::kNotice) {
  }
  if (got == Got::kNothing) return true;
  Kill();  // it says what it was not asked for, or is dead
  return false;
}

SymbolReader::Got SymbolReader::Take(SymbolAnswer* answer) {
  static thread_local std::string packet(kMaxSymbolAnswer + 1, '\0');
  ssize_t size;
  do {  // a reader that died with questions unread: its answers come after that error
    size = recv(socket_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
  } while (size < 0 && errno == ECONNRESET);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Got::kNothing;
  if (size <= 0 ||
      !DecodeSymbolAnswer({packet.data(), static_cast<size_t>(size)}, answer)) {
    return Got::kEnd;
  }
  if (answer->number != 0) return Got::kAnswer;
  auto read = std::find(prepared_.begin(), prepared_.end(), answer->module);
  if (read != prepared_.end()) prepared_.erase(read);
  return Got::kNotice;
}

bool SymbolReader::Wait(short events, const Patience& patience) {
  while (true) {
    uint64_t now = MonotonicNs();
    if (now >= patience.until_ns) return false;
    uint64_t left_ms = (patience.until_ns - now) / 1'000'000 + 1;
    pollfd entry{socket_.get(), events, 0};
    int ready = poll(&entry, 1, static_cast<int>(std::min(left_ms, kLookMs)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    // One that works and works is at a file without end, one that does not is on a
    // machine that has no time for it.
    if (ready == 0 && CpuNs() >= patience.until_cpu_ns) return false;
  }
}

SymbolReader::Patience SymbolReader::NewPatience() const {
  return {MonotonicNs() + patience_ns_, CpuNs() + patience_ns_ / 3};
}

void SymbolReader::Kill() {
  socket_.reset();
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  rusage used = {};
  TEMP_FAILURE_RETRY(wait4(pid_, nullptr, 0, &used));
  cpu_of_dead_ns_ += Ns(used.ru_utime) + Ns(used.ru_stime);
  pid_ = -1;
  ++deaths_;
}

std::optional<uint32_t> SymbolReader::TakeUnfinished() {
  if (prepared_.empty()) return std::nullopt;
  uint32_t first = prepared_.front();
  prepared_.clear();
  return first;
}

bool SymbolReader::HasRead(uint32_t module) const {
  return std::find(prepared_.begin(), prepared_.end(), module) == prepared_.end();
}

uint64_t SymbolReader::CpuNs() const {
  clockid_t clock = 0;
  timespec used = {};
  if (pid_ <= 0 || clock_getcpuclockid(pid_, &clock) != 0 ||
      clock_gettime(clock, &used) != 0) {
    return cpu_of_dead_ns_;
  }
  return cpu_of_dead_ns_ + static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace lull::relay
