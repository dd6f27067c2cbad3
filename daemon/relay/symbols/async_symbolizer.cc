#include "daemon/relay/symbols/async_symbolizer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/mutex.h"
#include "daemon/base/thread.h"
#include "daemon/relay/symbols/module_cache.h"
#include "daemon/relay/symbols/native_symbolizer.h"

namespace lull::relay {
namespace {

// Addresses that are looked up at once. A sender that waits is not kept for longer.
constexpr size_t kAtOnce = 256;
// Addresses of one process that wait to be looked up: more than that hangs anyway.
constexpr size_t kMaxExpected = 64 * 1024;
// With inlined calls a native stack may grow.
constexpr int kMaxFrames = 256;
// Bytes of the frames of all processes in one batch. A collector takes four times that;
// only invented names are so long.
constexpr size_t kMaxNamedBytes = 16 << 20;
constexpr uint64_t kPrepareNs = 300'000'000;
constexpr auto kPrepare = std::chrono::nanoseconds(kPrepareNs);
constexpr auto kLookAgain = std::chrono::milliseconds(10);
// With a thread at its end, to let it end its processes.
constexpr auto kEndPatience = std::chrono::milliseconds(200);

bool HasAddresses(const v1::Batch::Stacks& stacks) {
  return std::any_of(
      stacks.stacks().begin(), stacks.stacks().end(),
      [](const v1::StackDef& stack) { return stack.return_addresses_size() > 0; });
}

void NameStack(NativeSymbolizer* symbolizer, v1::StackDef* stack) {
  for (uint64_t address : stack->return_addresses()) {
    if (stack->frames_size() >= kMaxFrames) {
      stack->set_truncated(true);
      break;
    }
    symbolizer->Resolve(address, stack->mutable_frames());
  }
  stack->clear_return_addresses();
}

}  // namespace

struct AsyncSymbolizer::Naming {
  uint64_t sequence = 0;  // of the batch
  std::vector<v1::Batch::Stacks> stacks;
  bool done = false;  // guarded by the state's lock
  // As of when something was found out last.
  uint64_t steps = 0;
  uint64_t moved_ns = MonotonicNs();
};

struct AsyncSymbolizer::State {
  State(std::string folder, absl::Duration reader_patience)
      : directory(std::move(folder)), modules(reader_patience, [this] {
          MutexLock lock(mutex);
          ++steps;
        }) {}

  std::string SnapshotPath(uint64_t key) const {
    return absl::StrCat(directory, "/maps.", key);
  }
  bool over() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return stopped || given_up; }
  bool naming() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return !over() && (busy || !tasks.empty() || !expected.empty());
  }
  // None: there is nothing to do.
  std::function<void()> TakeWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void Run();
  // `room`: bytes of frames that the batch may still get.
  void Name(v1::Batch::Stacks* stacks, size_t* room);
  NativeSymbolizer* Of(uint64_t key);

  const std::string directory;
  Mutex mutex;
  std::condition_variable asked;  // or over
  std::condition_variable told;   // of something, or over
  std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mutex);  // in their order
  std::map<uint64_t, std::vector<uint64_t>> expected ABSL_GUARDED_BY(mutex);  // by key
  std::map<uint64_t, uint32_t> unread ABSL_GUARDED_BY(mutex);                 // by key
  uint64_t steps ABSL_GUARDED_BY(mutex) = 0;  // grows for as long as it gets on
  uint64_t cpu_ns ABSL_GUARDED_BY(mutex) = 0;
  bool busy ABSL_GUARDED_BY(mutex) = false;
  bool reading ABSL_GUARDED_BY(mutex) = false;
  bool running ABSL_GUARDED_BY(mutex) = false;
  bool stopped ABSL_GUARDED_BY(mutex) = false;
  bool given_up ABSL_GUARDED_BY(mutex) = false;

  // The thread's own.
  ModuleCache modules;
  std::map<uint64_t, std::unique_ptr<NativeSymbolizer>> processes;
};

// A process that is not known was gone before this relay came: what its snapshot knows.
NativeSymbolizer* AsyncSymbolizer::State::Of(uint64_t key) {
  std::unique_ptr<NativeSymbolizer>& process = processes[key];
  if (process == nullptr) {
    process = std::make_unique<NativeSymbolizer>(0, SnapshotPath(key), &modules);
  }
  return process.get();
}

void AsyncSymbolizer::State::Name(v1::Batch::Stacks* stacks, size_t* room) {
  NativeSymbolizer* symbolizer = Of(stacks->process_key());
  std::vector<uint64_t> addresses;
  for (const v1::StackDef& stack : stacks->stacks()) {
    addresses.insert(addresses.end(), stack.return_addresses().begin(),
                     stack.return_addresses().end());
  }
  for (size_t at = 0; at < addresses.size(); at += kAtOnce) {
    symbolizer->Expect(&addresses[at], std::min(kAtOnce, addresses.size() - at));
    MutexLock lock(mutex);
    ++steps;
  }
  for (v1::StackDef& stack : *stacks->mutable_stacks()) {
    if (stack.return_addresses().empty()) continue;
    if (*room > 0) {
      NameStack(symbolizer, &stack);
      *room -= std::min(*room, stack.ByteSizeLong());
    } else {
      NameByAddress(&stack);
    }
  }
  MutexLock lock(mutex);
  unread[stacks->process_key()] = symbolizer->modules_unread();
}

std::function<void()> AsyncSymbolizer::State::TakeWork() {
  if (!tasks.empty()) {
    std::function<void()> task = std::move(tasks.front());
    tasks.pop_front();
    return task;
  }
  if (expected.empty()) return nullptr;
  auto first = expected.begin();
  std::vector<uint64_t>& all = first->second;
  std::vector<uint64_t> some(
      all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(all.size(), kAtOnce)));
  all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(some.size()));
  const uint64_t key = first->first;
  if (all.empty()) expected.erase(first);
  return [this, key, some = std::move(some)] {
    auto process = processes.find(key);
    if (process != processes.end()) process->second->Expect(some.data(), some.size());
  };
}

void AsyncSymbolizer::State::Run() {
  uint64_t prepared_ns = 0;
  MutexLock lock(mutex);
  while (!over()) {
    const std::function<void()> work = TakeWork();
    busy = work != nullptr;
    lock.Unlock();
    if (work) work();
    if (MonotonicNs() - prepared_ns >= kPrepareNs) {
      for (auto& [key, process] : processes) process->Prepare();
      prepared_ns = MonotonicNs();
    }
    const bool is_reading = modules.IsReading();
    const uint64_t used_ns = modules.CpuNs();
    lock.Lock();
    if (busy) ++steps;
    busy = false;
    reading = is_reading;
    cpu_ns = used_ns;
    told.notify_all();
    if (over() || !tasks.empty() || !expected.empty()) continue;
    if (reading) {
      asked.wait_for(lock.native(), kLookAgain);
    } else {
      asked.wait_for(lock.native(), kPrepare);
    }
  }
}

AsyncSymbolizer::AsyncSymbolizer(std::string directory, absl::Duration patience,
                                 absl::Duration reader_patience)
    : patience_(patience),
      state_(std::make_shared<State>(std::move(directory), reader_patience)) {}

AsyncSymbolizer::~AsyncSymbolizer() { End(); }

void AsyncSymbolizer::End() {
  const auto until = std::chrono::steady_clock::now() + kEndPatience;
  MutexLock lock(state_->mutex);
  state_->stopped = true;
  state_->asked.notify_all();
  while (state_->running &&
         state_->told.wait_until(lock.native(), until) != std::cv_status::timeout) {
  }
}

void AsyncSymbolizer::Do(std::function<void()> task) {
  if (state_->over()) return;
  state_->tasks.push_back(std::move(task));
  state_->asked.notify_all();
  if (state_->running) return;
  try {
    StartThread([state = state_] {
      TakeTurnsAtOnce();
      state->Run();
      state->modules.EndReaders();
      MutexLock over(state->mutex);
      state->running = false;
      state->told.notify_all();
    }).detach();
    state_->running = true;
  } catch (const std::system_error&) {  // too many threads
    state_->given_up = true;
  }
}

void AsyncSymbolizer::Watch(uint64_t key, pid_t pid,
                            std::shared_ptr<const UniqueFd> memory, bool now) {
  auto process = std::make_shared<std::unique_ptr<NativeSymbolizer>>(
      std::make_unique<NativeSymbolizer>(pid, state_->SnapshotPath(key),
                                         &state_->modules, std::move(memory)));
  maps_[key] = (*process)->maps_reader();
  maps_[key]->Start();
  MutexLock lock(state_->mutex);
  Do([state = state_.get(), key, process, now] {
    if (now) (*process)->PrepareNow();
    state->processes[key] = std::move(*process);
  });
}

void AsyncSymbolizer::Expect(uint64_t key, absl::Span<const uint64_t> addresses) {
  auto maps = maps_.find(key);
  if (maps == maps_.end()) return;
  // A library that is there now may not be when its name is looked up.
  maps->second->StartFor(addresses);
  MutexLock lock(state_->mutex);
  if (state_->over()) return;
  std::vector<uint64_t>& expected = state_->expected[key];
  // Only hints, and while the spool is full the same ones come again with each batch.
  if (expected.size() > kMaxExpected) return;
  expected.insert(expected.end(), addresses.begin(), addresses.end());
  state_->asked.notify_all();
}

void AsyncSymbolizer::Forget(uint64_t key) {
  auto maps = maps_.extract(key);
  if (maps.empty()) return;
  MutexLock lock(state_->mutex);
  state_->expected.erase(key);
  state_->unread.erase(key);
  Do([state = state_.get(), key, reader = std::move(maps.mapped())] {
    state->processes.erase(key);
    unlink(state->SnapshotPath(key).c_str());
  });
}

bool AsyncSymbolizer::IsReading() const {
  MutexLock lock(state_->mutex);
  return state_->naming() || (!state_->over() && state_->reading);
}

bool AsyncSymbolizer::IsNaming() const {
  MutexLock lock(state_->mutex);
  return state_->naming();
}

uint32_t AsyncSymbolizer::ModulesUnread(uint64_t key) const {
  MutexLock lock(state_->mutex);
  auto found = state_->unread.find(key);
  return found == state_->unread.end() ? 0 : found->second;
}

uint64_t AsyncSymbolizer::CpuNs() const {
  MutexLock lock(state_->mutex);
  return state_->cpu_ns;
}

bool AsyncSymbolizer::Name(v1::Batch* batch) {
  std::vector<v1::Batch::Stacks*> places;
  for (v1::Batch::Stacks& stacks : *batch->mutable_stacks()) {
    if (HasAddresses(stacks)) places.push_back(&stacks);
  }
  MutexLock lock(state_->mutex);
  if (!places.empty()) {
    if (naming_ == nullptr || naming_->sequence != batch->sequence()) {
      naming_ = std::make_shared<Naming>();
      naming_->sequence = batch->sequence();
      for (const v1::Batch::Stacks* stacks : places) naming_->stacks.push_back(*stacks);
      Do([state = state_.get(), naming = naming_] {
        size_t room = kMaxNamedBytes;
        for (v1::Batch::Stacks& stacks : naming->stacks) state->Name(&stacks, &room);
        MutexLock done(state->mutex);
        naming->done = true;
      });
    }
    if (!Await(&lock)) return false;
  }
  for (size_t i = 0; i < places.size(); ++i) {
    if (naming_->done) {
      *places[i] = std::move(naming_->stacks[i]);
      continue;
    }
    for (v1::StackDef& stack : *places[i]->mutable_stacks()) NameByAddress(&stack);
    uint32_t& unread = state_->unread[places[i]->process_key()];
    unread = std::max(unread, 1u);
  }
  naming_.reset();
  for (v1::ProcessCounters& counters : *batch->mutable_counters()) {
    auto unread = state_->unread.find(counters.process_key());
    if (unread != state_->unread.end() && unread->second > counters.modules_unread()) {
      counters.set_modules_unread(unread->second);
    }
  }
  return true;
}

bool AsyncSymbolizer::Await(MutexLock* lock) {
  const auto until =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kWait);
  auto is_over = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // the lock is held
    return naming_->done || state_->over();
  };
  if (state_->told.wait_until(lock->native(), until, is_over)) return true;
  const uint64_t now_ns = MonotonicNs();
  if (state_->steps != naming_->steps) {
    naming_->steps = state_->steps;
    naming_->moved_ns = now_ns;
  } else if (absl::Nanoseconds(now_ns - naming_->moved_ns) > patience_) {
    state_->given_up = true;
    lock->Unlock();  // nobody waits for us while stderr takes no more
    LogWarning("native functions have no names from here on: reading them hangs");
    lock->Lock();
    return true;
  }
  return false;
}

void NameByAddress(v1::StackDef* stack) {
  for (uint64_t address : stack->return_addresses()) {
    stack->add_frames()->set_function(absl::StrFormat("0x%x", address - 1));
  }
  stack->clear_return_addresses();
}

}  // namespace lull::relay
