#include "daemon/relay/symbols/source_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/types/span.h"
#include "daemon/base/logging.h"
#include "daemon/base/mutex.h"
#include "daemon/base/text.h"
#include "daemon/base/thread.h"

namespace lull::relay {

// Shared with the thread, which outlives the reader where a file system hangs.
struct SourceReader::State {
  explicit State(Open open_file) : open(std::move(open_file)) {}

  const Open open;
  Mutex mutex;
  std::condition_variable news;
  std::deque<Request> requests ABSL_GUARDED_BY(mutex);  // the first is being read
  std::vector<Quoted> quoted ABSL_GUARDED_BY(mutex);
  uint64_t cpu_ns ABSL_GUARDED_BY(mutex) = 0;
  bool over ABSL_GUARDED_BY(mutex) = false;  // nothing is read any more
  bool running ABSL_GUARDED_BY(mutex) = false;
};

namespace {

// Each question may hold a descriptor.
constexpr size_t kAtOnce = 64;
// With a thread at its end, to let it end its processes.
constexpr auto kPatience = std::chrono::milliseconds(200);

// It is the word of a process that may have been taken over.
bool IsAround(const SymbolAnswer& answer, uint64_t line) {
  const size_t lines = answer.frames.size();
  for (const NativeFrame& text : answer.frames) {
    if (text.function.find('\n') != std::string::npos) return false;
  }
  return lines != 0 && lines <= 2 * kLinesAround + 1 && answer.address != 0 &&
         answer.address <= line && line < answer.address + lines;
}

// On the thread.
class Reading {
 public:
  explicit Reading(const SourceReader::Open& open) : open_(open) {}

  // False: the process that reads did not answer.
  bool Read(const SourceReader::Request& request, absl::Span<const SourceLine> lines,
            std::vector<SourceReader::Quoted>* quoted) {
    // A reader of root's files has nobody's rights; who reads them otherwise is root,
    // too.
    const bool ours = request.owner.uid == 0 && geteuid() == 0;
    const int root = request.root->get();
    std::vector<SymbolReader::Question> questions(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      questions[i].module = request.process;
      questions[i].offset = lines[i].line;
      questions[i].path = lines[i].file;
      questions[i].not_after_ns = request.not_after_ns;
      questions[i].file =
          ours ? open_(root, lines[i].file) : UniqueFd(fcntl(root, F_DUPFD_CLOEXEC, 0));
    }
    std::vector<SymbolAnswer> answers;
    readers_.Quote(request.owner, questions, &answers);
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!IsAround(answers[i], lines[i].line)) continue;
      SourceReader::Quoted& one = quoted->emplace_back();
      one.at = lines[i];
      one.excerpt.first_line = static_cast<uint32_t>(answers[i].address);
      for (const NativeFrame& text : answers[i].frames) {
        one.excerpt.lines.push_back(CleanText(text.function, kMaxSourceLine));
      }
    }
    return answers.size() == lines.size();
  }

  uint64_t CpuNs() const { return readers_.CpuNs(); }

 private:
  const SourceReader::Open& open_;
  ModuleCache readers_;
};

}  // namespace

SourceReader::SourceReader(Open open)
    : state_(std::make_shared<State>(std::move(open))) {}

SourceReader::~SourceReader() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(state_->mutex);
  state_->over = true;
  state_->news.notify_all();
  while (state_->running &&
         state_->news.wait_until(lock.native(), until) != std::cv_status::timeout) {
  }
}

void SourceReader::Run(State* state) {
  Reading reading(state->open);
  MutexLock lock(state->mutex);
  while (true) {
    while (!state->over && state->requests.empty()) state->news.wait(lock.native());
    if (state->over) return;
    const Request& request = state->requests.front();  // stays where it is
    for (size_t at = 0; at < request.lines.size() && !state->over; at += kAtOnce) {
      lock.Unlock();
      std::vector<Quoted> quoted;
      const bool read = reading.Read(
          request, absl::MakeSpan(request.lines).subspan(at, kAtOnce), &quoted);
      const uint64_t cpu_ns = reading.CpuNs();
      lock.Lock();
      state->cpu_ns = cpu_ns;
      std::move(quoted.begin(), quoted.end(), std::back_inserter(state->quoted));
      if (read) continue;
      LogWarning("no more lines of source are kept: reading them failed");
      state->over = true;
    }
    if (!state->over) state->requests.pop_front();
  }
}

void SourceReader::Ask(Request request) {
  MutexLock lock(state_->mutex);
  if (state_->over || request.lines.empty()) return;
  state_->requests.push_back(std::move(request));
  state_->news.notify_all();
  if (std::exchange(started_, true)) return;
  try {
    StartThread([state = state_] {
      Run(state.get());
      MutexLock over(state->mutex);
      state->running = false;
      state->news.notify_all();
    }).detach();
    state_->running = true;
  } catch (const std::system_error&) {  // too many threads
    state_->over = true;
  }
}

std::vector<SourceReader::Quoted> SourceReader::Take() {
  MutexLock lock(state_->mutex);
  return std::exchange(state_->quoted, {});
}

bool SourceReader::reading() const {
  MutexLock lock(state_->mutex);
  return !state_->over && !state_->requests.empty();
}

uint64_t SourceReader::CpuNs() const {
  MutexLock lock(state_->mutex);
  return state_->cpu_ns;
}

}  // namespace lull::relay
