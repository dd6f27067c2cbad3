#include "daemon/import/translate.h"

#include <algorithm>
#include <boost/sort/flat_stable_sort/flat_stable_sort.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/base/status.h"
#include "daemon/import/backward_stacks.h"
#include "daemon/import/call_events.h"
#include "daemon/import/event_writer.h"
#include "daemon/import/python_names.h"
#include "daemon/import/step_plan.h"
#include "daemon/import/thread_sweep.h"

namespace lull::imports {
namespace {

using abi::EventType;

constexpr uint64_t kSecond = 1'000'000'000;
// Events are one job's: what lies days from the rest has a time that is none.
constexpr uint64_t kFarthestEvent = 86'400 * kSecond;
// Shorter waits are no events in a live job either.
constexpr uint64_t kShortestWait = 50'000;
// The collector takes no heavier ones.
constexpr uint64_t kLongestSample = 60 * kSecond;
// About 50 bytes each. Real ones of five million events have some ten thousand.
constexpr size_t kMostStacks = 1'500'000;
constexpr CorrelationId kNoCorrelation{UINT32_MAX};
constexpr uint64_t kUnknownState = 3;  // of a sample

// What a built-in function of Python (ParsePythonName) waits for, as the name of a
// call.
std::string_view WaitOf(const std::string& function) {
  constexpr std::pair<std::string_view, std::string_view> kWaits[] = {
      {"acquire of _thread.", "lock.acquire"},
      {"acquire of _multiprocessing.SemLock", "lock.acquire"},
      {"__enter__ of _multiprocessing.SemLock", "lock.acquire"},
      {"run_backward of ", "run_backward"},
      {"sleep of module", "sleep"},
      {"poll of select.", "poll"},
      {"recv of ", "recv"},
      {"recv_into of ", "recv_into"},
  };
  for (const auto& [prefix, wait] : kWaits) {
    if (function.starts_with(prefix)) return wait;
  }
  if (function == "sleep" || function == "select") return function;
  return {};
}

bool IsLoading(absl::string_view name) {
  return absl::StartsWith(name, "enumerate(DataLoader)#") ||
         absl::StartsWith(name, "enumerate(DataPipe)#");
}

class Translator {
 public:
  Translator(Trace& trace, uint64_t key, ApiTable& apis, const BatchSink& sink,
             ImportCounts* counts)
      : trace_(trace), key_(key), writer_(trace, key, apis, sink), counts_(*counts) {}

  absl::Status Run() {
    if (trace_.records.empty()) return absl::OkStatus();
    // They come as stretches that are in order, each of a thread or a device: 5 ms in
    // place of 9 by std::sort (h100_owlv2).
    boost::sort::flat_stable_sort(trace_.records.begin(), trace_.records.end(),
                                  RecordOrder());
    DropFarAway();
    if (trace_.records.empty()) return absl::OkStatus();
    LookAhead();
    steps_ = StepsOf(trace_);
    const uint64_t start = Time(trace_.records.front().start_ns);
    counts_.start_ns = start;
    uint64_t next_mark = start + kSecond;
    for (const Record& record : trace_.records) {
      const uint64_t now_ns = Time(record.start_ns);
      if (now_ns >= next_mark) {
        LULL_RETURN_IF_ERROR(Mark(next_mark));
        next_mark += (now_ns - next_mark) / kSecond * kSecond + kSecond;
      } else if (writer_.full()) {
        LULL_RETURN_IF_ERROR(writer_.SendPart());
      }
      Take(record);
      if (writer_.stacks() > kMostStacks) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "more than ", kMostStacks, " different stacks, which no real trace has"));
      }
    }
    return End();
  }

 private:
  struct Thread {
    ThreadSweep sweep;
    ThreadSweep regions;
    bool submits = false;
    bool autograd = false;
    bool unknown = true;   // nothing but calls
    uint64_t last_ns = 0;  // the end of its last record, in time of the trace
  };

  // The trace's clock is ours from here on.
  uint64_t Time(uint64_t ns) const { return trace_.base_ns + ns; }

  void DropFarAway() {
    auto& records = trace_.records;
    if (records.empty()) return;
    const uint64_t middle = records[records.size() / 2].start_ns;
    auto far = [middle](const Record& record) {
      return record.end_ns - record.start_ns > kFarthestEvent ||
             record.start_ns + kFarthestEvent < middle ||
             record.start_ns > middle + kFarthestEvent;
    };
    const auto kept = std::remove_if(records.begin(), records.end(), far);
    const auto dropped = static_cast<uint64_t>(records.end() - kept);
    if (dropped > 0) counts_.ignored["days away from the rest"] += dropped;
    records.erase(kept, records.end());
  }

  // What has to be known before the first event.
  void LookAhead() {
    for (const Record& record : trace_.records) {
      end_ns_ = std::max(end_ns_, Time(record.end_ns));
      if (IsOfDevice(record.kind)) {
        first_operation_ns_ = std::min(first_operation_ns_, Time(record.start_ns));
        ++counts_.found["GPU records"];
        if (record.correlation == 0 || !trace_.called.contains(record.correlation)) {
          ++counts_.found["GPU records without a launch"];
        }
        continue;
      }
      Thread& thread = threads_[record.tid];
      thread.last_ns = std::max(thread.last_ns, record.end_ns);
      if (record.kind == Kind::kCall) {
        if (trace_.ran.contains(record.correlation)) thread.submits = true;
        continue;
      }
      thread.unknown = false;
      if (record.kind == Kind::kOperator && !thread.autograd) {
        thread.autograd = IsBackward(record, trace_.strings[record.name]);
      }
      has_python_ |= record.kind == Kind::kPython && record.line > 0;
    }
    for (const auto& [tid, thread] : threads_) {
      if (thread.autograd && thread.submits) has_engine_ = true;
    }
    counts_.lines_of_functions = has_python_;
  }

  // For ThreadSweep.
  auto OnStay(uint32_t tid, const Thread& thread) {
    return [this, tid, &thread](uint32_t doing, uint64_t from_ns, uint64_t to_ns) {
      WriteStay(tid, thread, doing, from_ns, to_ns);
    };
  }

  void Take(const Record& record) {
    if (IsOfDevice(record.kind)) return TakeOperation(record);
    Thread& thread = threads_[record.tid];
    Leave(record.tid, thread, record.start_ns);
    // What it did before nobody knows.
    if (!thread.sweep.begun()) {
      running_.push_back(record.tid);
      thread.sweep.TellStay(record.start_ns, OnStay(record.tid, thread));
    }
    switch (record.kind) {
      case Kind::kCall:
        return TakeCall(record, thread);
      case Kind::kMemory:
        return TakeMemory(record, thread);
      case Kind::kGc:
        return TakeGc(record, thread);
      case Kind::kAnnotation:
        return EnterRegion(record, thread);
      default:
        return Enter(record, thread);
    }
  }

  abi::Event EventOf(const Record& record, EventType type) const {
    abi::Event event = {};
    event.type = type;
    event.start_ns = Time(record.start_ns);
    event.duration_ns = record.end_ns - record.start_ns;
    return event;
  }

  void Leave(uint32_t tid, Thread& thread, uint64_t trace_ns) {
    const auto on_stay = OnStay(tid, thread);
    const auto on_annotation = [&](const Record& record, const Whereabouts& inside) {
      EndAnnotation(record, inside);
    };
    thread.sweep.LeaveUntil(trace_ns, on_annotation, on_stay);
    thread.regions.LeaveUntil(trace_ns, on_annotation, on_stay);
  }

  void WriteStay(uint32_t tid, const Thread& thread, uint32_t doing, uint64_t from_ns,
                 uint64_t to_ns) {
    if (!thread.submits) return;
    abi::Event event = {};
    SampleView{event}
        .set_look(kUnknownState, doing == 0 ? v1::HOST_SAMPLE_QUALITY_NO_STATE
                                            : v1::HOST_SAMPLE_QUALITY_EXACT)
        .set_role(tid == trace_.pid ? v1::HOST_SAMPLE_ROLE_MAIN
                  : thread.autograd ? v1::HOST_SAMPLE_ROLE_AUTOGRAD
                                    : v1::HOST_SAMPLE_ROLE_FEEDER);
    event.type = static_cast<EventType>(v1::EVENT_TYPE_HOST_SAMPLE);
    event.py_stack = writer_.PythonRef(doing);
    // A report of a range counts samples by their starts.
    const uint64_t piece =
        std::clamp((to_ns - from_ns) / 1000, kSecond, kLongestSample);
    for (; from_ns < to_ns; from_ns += event.duration_ns) {
      event.start_ns = Time(from_ns);
      event.duration_ns = std::min(piece, to_ns - from_ns);
      SampleView{event}.set_weight_ns(event.duration_ns);
      writer_.WriteSample(event, tid);
    }
  }

  StackTable::Place PlaceOf(const Record& record, std::string_view file) {
    return {record.name, trace_.strings.Intern(file), 0};
  }

  void Enter(const Record& record, Thread& thread) {
    Whereabouts inside = thread.sweep.now();
    if (record.kind == Kind::kPython) {
      const StackTable::Place place{record.name, record.text, record.line};
      const uint32_t caller = inside.frames       ? inside.python
                              : record.extra != 0 ? CallStack(record.extra)
                                                  : 0;
      inside.python = writer_.python().Push(caller, place);
      inside.doing = writer_.python().Push(inside.doing, place);
      inside.frames = true;
    } else if (record.kind == Kind::kOperator) {
      const StackTable::Place place = PlaceOf(record, kOperatorFile);
      inside.operators = writer_.operators().Push(inside.operators, place);
      if (record.text != 0 && !inside.frames) {
        const uint32_t stack = CallStack(record.text);
        if (stack != 0) inside.python = inside.doing = stack;
      }
      EnterPass(record, &inside);
      // The engine's own threads do what the node says that launches next.
      inside.doing = thread.autograd && inside.python == 0
                         ? 0
                         : writer_.python().Push(inside.doing, place);
    }
    if (inside.doing != thread.sweep.now().doing) {
      thread.sweep.TellStay(record.start_ns, OnStay(record.tid, thread));
    }
    if (record.kind == Kind::kPython) TakeWait(record, inside, thread);
    thread.sweep.Enter(record, inside);
  }

  void EnterPass(const Record& record, Whereabouts* inside) {
    if (inside->python != 0) {
      if (IsForward(record)) backward_.AddForward(record, inside->python);
    } else if (IsBackward(record, trace_.strings[record.name])) {
      inside->backward = backward_.Of(record);
    }
  }

  void EnterRegion(const Record& record, Thread& thread) {
    Whereabouts inside = thread.regions.now();
    inside.python = thread.sweep.now().python;
    if (inside.python == 0 && record.text != 0) inside.python = CallStack(record.text);
    inside.regions =
        writer_.operators().Push(inside.regions, StackTable::Place{record.name, 0, 0});
    ++inside.depth;
    inside.loading |= IsLoading(trace_.strings[record.name]);
    BeginSteps(record.start_ns);
    thread.regions.Enter(record, inside);
  }

  uint32_t CallStack(uint32_t text) {
    auto [it, fresh] = call_stacks_.try_emplace(text);
    if (fresh) {
      // Copied: what it interns may move the text.
      const std::string copy = trace_.strings[text];
      it->second = writer_.python().OfCallStack(copy, trace_.strings);
    }
    return it->second;
  }

  // Told as it begins, so that no part of it comes before it.
  void BeginSteps(uint64_t trace_ns) {
    for (; next_step_ < steps_.size() && steps_[next_step_].start_ns <= trace_ns;
         ++next_step_) {
      const PlannedStep& step = steps_[next_step_];
      if (step.end_ns <= step.start_ns) continue;
      abi::Event event = {};
      event.type = EventType::kStep;
      event.start_ns = Time(step.start_ns);
      event.duration_ns = step.end_ns - step.start_ns;
      StepView{event}.set_number(step.number).set_source(v1::STEP_SOURCE_PROFILER);
      writer_.Write(event, step.tid);
      ++counts_.found["steps"];
    }
  }

  void EndAnnotation(const Record& record, const Whereabouts& inside) {
    const std::string& name = trace_.strings[record.name];
    if (NamesStep(name)) return;  // told as what it is
    abi::Event event = EventOf(record, EventType::kScope);
    ScopeView{event}
        .set_place(inside.depth, abi::ScopeSource::kRecordFunction)
        .set_kind(IsLoading(name) ? abi::ScopeKind::kData : abi::ScopeKind::kUser);
    event.py_stack = writer_.PythonRef(inside.python);
    event.native_stack = writer_.NativeRef(inside.regions);
    writer_.Write(event, record.tid);
    if (IsLoading(name)) counts_.applied["data"] = true;
  }

  void TakeWait(const Record& record, const Whereabouts& inside, Thread& thread) {
    if (record.end_ns - record.start_ns < kShortestWait) return;
    if (trace_.strings[record.text] != kBuiltinFile) return;
    const std::string_view wait = WaitOf(trace_.strings[record.name]);
    if (wait == "run_backward") {
      backward_.AddCaller(thread.sweep.now().python, record.start_ns, record.end_ns);
      if (!has_engine_) return;
    }
    if (wait.empty()) return;
    abi::Event event = EventOf(record, EventType::kHostWait);
    event.api = writer_.Api(trace_.strings.Intern(wait), CallKind::kOther);
    if (thread.regions.now().loading) HostWaitView{event}.set_part_of(kWaitWithinData);
    event.py_stack = writer_.PythonRef(inside.python);
    writer_.Write(event, record.tid);
    counts_.applied["host_wait"] = true;
  }

  void TakeCall(const Record& record, Thread& thread) {
    const std::string& name = trace_.strings[record.name];
    const CallFacts facts = FactsOf(record.name);
    abi::Event event = HookOf(record, facts, name, trace_);
    const uint16_t api = writer_.Api(record.name, facts.kind);
    const Whereabouts& now = thread.sweep.now();
    abi::Event call = EventOf(record, EventType::kApiCall);
    ApiCallView{call}
        .set_caller(ThreadId{record.tid})
        .set_correlation(record.correlation != 0 ? CorrelationId{record.correlation}
                                                 : kNoCorrelation);
    call.api = api;
    writer_.Write(call, record.tid);
    ++counts_.found["API calls"];
    if (thread.unknown) ++counts_.found["API calls of threads without a name"];
    if (event.type == EventType::kNone) {
      if (facts.kind == CallKind::kLaunch) {
        ++counts_.found["launches without a GPU record"];
      }
      return;
    }
    event.start_ns = call.start_ns;
    event.duration_ns = call.duration_ns;
    event.api = api;
    event.py_stack = writer_.PythonRef(now.stack());
    event.native_stack = writer_.NativeRef(now.operators);
    writer_.Write(event, record.tid);
    if (event.type == EventType::kDeviceMemory) counts_.applied["allocator"] = true;
    ++counts_.found[now.frames           ? "stacks by frames"
                    : now.python != 0    ? "stacks by the operator"
                    : now.backward != 0  ? "stacks by the forward operator"
                    : now.operators != 0 ? "operators without a line"
                                         : "calls without a stack"];
  }

  const CallFacts& FactsOf(uint32_t name) {
    auto [it, fresh] = facts_.try_emplace(name);
    if (fresh) it->second = FactsOfCall(trace_.strings[name]);
    return it->second;
  }

  void TakeMemory(const Record& record, Thread& thread) {
    const MemoryTotals& totals = trace_.memory_totals[record.extra];
    const auto bytes = static_cast<int64_t>(record.bytes);
    abi::Event event = EventOf(record, EventType::kTorchMemory);
    event.flags = bytes < 0 ? abi::kFlagFree : 0;
    MemoryView{event}
        .set_address(record.address)
        .set_bytes(bytes < 0 ? 0 - record.bytes : record.bytes)
        .set_device(TorchDevice{totals.device});
    event.py_stack = writer_.PythonRef(thread.sweep.now().stack());
    event.native_stack = writer_.NativeRef(thread.sweep.now().operators);
    writer_.Write(event, record.tid);
    if (!totals.known) return;
    abi::Event reserved = EventOf(record, EventType::kTorchReserved);
    ReservedView{reserved}
        .set_allocated(totals.allocated)
        .set_bytes(totals.reserved)
        .set_device(TorchDevice{totals.device});
    // Without a stack: it is a level of the device's, and nobody's.
    writer_.Write(reserved, record.tid);
  }

  void TakeGc(const Record& record, Thread& thread) {
    abi::Event event = EventOf(record, EventType::kGcPause);
    event.py_stack = writer_.PythonRef(thread.sweep.now().stack());
    writer_.Write(event, record.tid);
    counts_.applied["gc"] = true;
  }

  void TakeOperation(const Record& record) {
    if (!tracing_) BeginTracing();
    abi::Event event =
        EventOf(record, record.kind == Kind::kCopy     ? EventType::kGpuCopy
                        : record.kind == Kind::kMemset ? EventType::kGpuMemset
                                                       : EventType::kGpuKernel);
    OperationView{event}.set_correlation(CorrelationId{record.correlation});
    event.native_stack = writer_.StreamRef(record.stream);
    if (record.kind == Kind::kKernel) {
      event.py_stack = writer_.KernelRef(record.extra);
    } else {
      GpuCopyView{event}.set_bytes(record.bytes).set_shape(CopyShape{record.extra});
    }
    writer_.Write(event, 0);
  }

  void BeginTracing() {
    tracing_ = true;
    WriteTracing(first_operation_ns_, abi::TracingState::kActive,
                 v1::TRACING_REASON_IMPORTED);
  }

  void WriteTracing(uint64_t time_ns, abi::TracingState state,
                    v1::TracingReason reason) {
    abi::Event event = {};
    event.type = EventType::kGpuTracing;
    event.start_ns = time_ns;
    TracingView{event}.set_state(state).set_reason(reason);
    writer_.Write(event, 0);
  }

  // All that ended before has been written, also stays of threads of which more is to
  // come.
  absl::Status Mark(uint64_t time_ns) {
    const uint64_t trace_ns = time_ns - trace_.base_ns;
    size_t kept = 0;
    for (uint32_t tid : running_) {
      Thread& thread = threads_[tid];
      LULL_RETURN_IF_ERROR(Settle(tid, thread, trace_ns));
      if (thread.last_ns >= trace_ns) running_[kept++] = tid;
    }
    running_.resize(kept);
    return writer_.Send(time_ns);
  }

  absl::Status Settle(uint32_t tid, Thread& thread, uint64_t trace_ns) {
    Leave(tid, thread, trace_ns);
    thread.sweep.TellStay(trace_ns, OnStay(tid, thread));
    return writer_.full() ? writer_.SendPart() : absl::OkStatus();
  }

  absl::Status End() {
    for (auto& [tid, thread] : threads_) {
      if (!thread.sweep.begun()) continue;
      LULL_RETURN_IF_ERROR(Settle(tid, thread, end_ns_ - trace_.base_ns));
    }
    if (tracing_) {
      WriteTracing(end_ns_, abi::TracingState::kOff, v1::TRACING_REASON_PROCESS_END);
    }
    LULL_RETURN_IF_ERROR(writer_.Send(end_ns_));
    v1::ProcessInfo process;
    process.set_key(key_);
    process.set_pid(trace_.pid);
    process.set_start_ns(counts_.start_ns);
    process.set_rank(trace_.rank);
    process.set_world_size(trace_.world_size);
    process.set_local_rank(-1);
    counts_.end_ns = end_ns_;
    counts_.events = writer_.events();
    return writer_.SendEnd(end_ns_, process);
  }

  Trace& trace_;
  const uint64_t key_;
  EventWriter writer_;
  ImportCounts& counts_;
  // Nodes stay where they are: threads are held on to.
  std::map<uint32_t, Thread> threads_;
  absl::flat_hash_map<uint32_t, uint32_t> call_stacks_;
  BackwardStacks backward_{writer_.python(), trace_.strings};
  std::unordered_map<uint32_t, CallFacts> facts_;
  std::vector<uint32_t> running_;  // threads that have begun, and have not ended yet
  uint64_t end_ns_ = 0;
  uint64_t first_operation_ns_ = UINT64_MAX;
  bool tracing_ = false;
  bool has_python_ = false;
  bool has_engine_ = false;
  std::vector<PlannedStep> steps_;
  size_t next_step_ = 0;
};

}  // namespace

absl::Status Translate(Trace& trace, uint64_t key, ApiTable& apis,
                       const BatchSink& sink, ImportCounts* counts) {
  return Translator(trace, key, apis, sink, counts).Run();
}

}  // namespace lull::imports
