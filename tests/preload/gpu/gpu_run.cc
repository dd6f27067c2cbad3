#include "tests/preload/gpu/gpu_run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "daemon/base/gpu_event_views.h"

namespace lull {
namespace {

using Clock = std::chrono::steady_clock;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whatever is committed and unread, and room again for the writers.
void drain(const FakeRelay::Target& target, std::vector<abi::Event>* events) {
  abi::SegmentView view(target.segment);
  for (uint32_t i = 0; i < view.header().rings_used; ++i) {
    abi::RingHeader& ring = view.ring(i);
    uint64_t head = ring.head.load(std::memory_order_acquire);
    uint64_t tail = ring.tail.load(std::memory_order_relaxed);
    for (; tail < head; ++tail) {
      events->push_back(view.slot(i, tail));
    }
    ring.tail.store(tail, std::memory_order_release);
  }
}

pid_t start(std::vector<std::string> words, const Environment& environment,
            const std::string& output) {
  pid_t pid = fork();
  if (pid != 0) return pid;
  int fd = open(output.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  dup2(fd, 1);
  dup2(fd, 2);
  for (const auto& [name, value] : environment) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

std::vector<sim::TruthRecord> read_truth(const std::string& prefix, pid_t pid) {
  std::vector<sim::TruthRecord> records;
  std::filesystem::path path(prefix);
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path())) {
    std::string bytes = contents(entry.path());
    sim::TruthHeader header;
    if (bytes.size() < sim::kHeaderBytes) continue;
    memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != sim::kTruthMagic || header.pid != static_cast<uint32_t>(pid)) {
      continue;
    }
    for (size_t at = sim::kHeaderBytes; at + sizeof(sim::TruthRecord) <= bytes.size();
         at += sizeof(sim::TruthRecord)) {
      sim::TruthRecord record;
      memcpy(&record, bytes.data() + at, sizeof record);
      if (record.type != 0) records.push_back(record);
    }
  }
  return records;
}

const char* name_of(abi::TracingState state) {
  constexpr const char* kNames[] = {"off", "warm-up", "active", "yielded"};
  return kNames[static_cast<uint32_t>(state)];
}
const char* name_of(abi::TracingReason reason) {
  constexpr const char* kNames[] = {"schedule",      "other user", "budget",
                                    "foreign clock", "error",      "process end",
                                    "disarmed"};
  return kNames[static_cast<uint32_t>(reason)];
}

}  // namespace

GpuRun run_on_gpu(std::vector<std::string> words, const GpuRunOptions& options) {
  char folder[] = "/tmp/lull-test-XXXXXX";
  if (mkdtemp(folder) == nullptr) std::abort();
  std::string truth = std::string(folder) + "/truth";
  std::string output = std::string(folder) + "/output";
  FakeRelay relay(FakeRelay::Manner::kWelcome, options.configure);
  Environment environment = {{"LD_PRELOAD", LULL_SHIM},
                             {"LULL_SOCKET", relay.path()},
                             {"LD_LIBRARY_PATH", LULL_SIM},
                             {"LULL_SIM_LOG", truth}};
  for (const auto& [name, value] : options.environment) environment[name] = value;
  GpuRun run;
  Clock::time_point begin = Clock::now();
  pid_t pid = start(std::move(words), environment, output);
  FakeRelay::Target target{};
  auto find_target = [&] {
    for (const FakeRelay::Target& candidate : relay.targets()) {
      if (candidate.pid == pid) target = candidate;
    }
    return target.segment != nullptr;
  };
  while (waitpid(pid, &run.status, WNOHANG) == 0) {
    if (find_target()) {
      if (options.drain) drain(target, &run.events);
      std::chrono::duration<double> seconds = Clock::now() - begin;
      if (options.watch) options.watch(target, seconds.count());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (find_target()) {
    drain(target, &run.events);
    run.segment.assign(target.segment, target.segment + abi::kSegmentSize);
  } else {
    run.segment.resize(abi::kSegmentSize);
  }
  run.output = contents(output);
  run.truth = read_truth(truth, pid);
  std::filesystem::remove_all(folder);
  return run;
}

std::vector<abi::Event> GpuRun::of(abi::EventType type) const {
  std::vector<abi::Event> found;
  for (const abi::Event& event : events) {
    if (event.type == type) found.push_back(event);
  }
  std::ranges::sort(found, {}, &abi::Event::start_ns);
  return found;
}

std::vector<sim::TruthRecord> GpuRun::ops(uint16_t kind) const {
  std::vector<sim::TruthRecord> found;
  for (const sim::TruthRecord& record : truth) {
    bool is_op = record.type == static_cast<uint32_t>(sim::RecordType::kOp);
    if (is_op && record.kind == kind) found.push_back(record);
  }
  std::ranges::sort(found, {}, &sim::TruthRecord::start_ns);
  return found;
}

std::string GpuRun::text(abi::Ref ref) const {
  auto* entry = reinterpret_cast<const abi::TextEntry*>(view().entry(ref));
  if (ref == 0 || entry->header.kind != abi::EntryKind::kText) return "";
  return {reinterpret_cast<const char*>(entry + 1), entry->size};
}

std::string GpuRun::kernel_name(const abi::Event& event) const {
  auto* entry = reinterpret_cast<const abi::KernelEntry*>(view().entry(event.py_stack));
  if (entry->header.kind != abi::EntryKind::kKernel) return "";
  return text(entry->name);
}

std::vector<std::string> GpuRun::tracing() const {
  std::vector<std::string> names;
  for (const abi::Event& event : of(abi::EventType::kGpuTracing)) {
    names.push_back(
        std::string(
            name_of(static_cast<abi::TracingState>(TracingView{event}.state()))) +
        ":" + name_of(static_cast<abi::TracingReason>(TracingView{event}.reason())));
  }
  return names;
}

uint64_t GpuRun::lost() const {
  uint64_t sum = 0;
  for (const abi::Event& event : of(abi::EventType::kGpuLost))
    sum += LostView{event}.records();
  return sum;
}

void trace_continuously(abi::ControlBlock& control) {
  control.gpu_mode = static_cast<uint32_t>(abi::GpuMode::kContinuous);
}

void trace_by_clock(abi::ControlBlock& control) {
  control.gpu_mode = static_cast<uint32_t>(abi::GpuMode::kWindow);
  control.gpu_by_clock = 1;
}

}  // namespace lull
