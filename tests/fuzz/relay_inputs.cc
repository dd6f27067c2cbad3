#include "tests/fuzz/relay_inputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <set>
#include <utility>

#include "daemon/base/runtime_directory.h"
#include "daemon/collector/ingest/validate.h"
#include "daemon/relay/deliver/hello.h"
#include "daemon/relay/deliver/spool.h"
#include "daemon/relay/deliver/spool_format.h"
#include "daemon/relay/read/batch_builder.h"
#include "daemon/relay/read/target.h"
#include "daemon/relay/symbols/line_table.h"
#include "daemon/relay/symbols/maps.h"
#include "daemon/relay/symbols/symbol_protocol.h"
#include "tests/daemon/relay/fake_segment.h"

namespace lull::relay {
namespace {

void Require(bool condition) {
  if (!condition) abort();
}

// The parts of a segment that a target writes and the relay looks at, in small.
constexpr size_t kRings = 2;
constexpr size_t kSlots = 16;
constexpr size_t kArenaBytes = 1024;

std::string_view Take(std::string_view* input, size_t size) {
  std::string_view piece = input->substr(0, size);
  input->remove_prefix(piece.size());
  return piece;
}

void Overwrite(char* where, std::string_view bytes) {
  memcpy(where, bytes.data(), bytes.size());
}

// Input: arena_used, rings_used, ring headers, the first chunk of each ring's table,
// the first slots of the first chunks, the arena.
void FillSegment(std::string_view input, FakeSegment* segment) {
  abi::SegmentView view = segment->view();
  uint32_t used = 0;
  Overwrite(reinterpret_cast<char*>(&used), Take(&input, sizeof(used)));
  view.header().arena_used = used;
  Overwrite(reinterpret_cast<char*>(&used), Take(&input, sizeof(used)));
  view.header().rings_used = used;
  for (uint32_t i = 0; i < kRings; ++i) {
    Overwrite(reinterpret_cast<char*>(&view.ring(i)),
              Take(&input, sizeof(abi::RingHeader)));
  }
  for (uint32_t i = 0; i < kRings; ++i) {
    Overwrite(reinterpret_cast<char*>(view.table(i)),
              Take(&input, sizeof(abi::ChunkId)));
  }
  for (abi::ChunkId i = 0; i < kRings; ++i) {
    Overwrite(reinterpret_cast<char*>(view.chunk(i)),
              Take(&input, kSlots * sizeof(abi::Event)));
  }
  Overwrite(view.arena(), Take(&input, kArenaBytes));
}

// What FillSegment() reads.
std::string SegmentSeed(const FakeSegment& segment) {
  abi::SegmentView view = segment.view();
  uint32_t used = view.header().arena_used;
  std::string seed(reinterpret_cast<char*>(&used), sizeof(used));
  used = view.header().rings_used;
  seed.append(reinterpret_cast<char*>(&used), sizeof(used));
  for (uint32_t i = 0; i < kRings; ++i) {
    seed.append(reinterpret_cast<char*>(&view.ring(i)), sizeof(abi::RingHeader));
  }
  for (uint32_t i = 0; i < kRings; ++i) {
    seed.append(reinterpret_cast<char*>(view.table(i)), sizeof(abi::ChunkId));
  }
  for (abi::ChunkId i = 0; i < kRings; ++i) {
    seed.append(reinterpret_cast<char*>(view.chunk(i)), kSlots * sizeof(abi::Event));
  }
  seed.append(view.arena(), kArenaBytes);
  return seed;
}

std::string HostSeed() {
  FakeSegment segment;
  abi::Ref code = segment.AddCode("train.py", "step", 3, 11, "\x80\x01");
  abi::Ref python = segment.AddPythonStack({{code, 0}, {code, -1}});
  abi::Ref native = segment.AddNativeStack({0x1000, 0x2000});
  for (uint32_t ring = 0; ring < kRings; ++ring) {
    segment.Commit(ring, MakeEvent(abi::EventType::kThreadStart, 7));
    for (int i = 0; i < 6; ++i) {
      abi::Event event = MakeEvent(abi::EventType::kSync, i);
      event.py_stack = python;
      event.native_stack = native;
      segment.Commit(ring, event);
    }
  }
  return SegmentSeed(segment);
}

std::string GpuSeed() {
  FakeSegment segment;
  abi::Ref stream = segment.AddGpuStream(0, 1, 7);
  abi::Ref name = segment.AddText("_Z4gemmPf");
  const std::pair<abi::EventType, abi::Ref> events[] = {
      {abi::EventType::kGpuDevice,
       segment.AddGpuDevice(segment.AddText("NVIDIA H200"), 0, 132)},
      {abi::EventType::kGpuKernel, segment.AddKernel(name)},
      {abi::EventType::kGpuKernel, segment.AddKernel(0)},
      {abi::EventType::kGpuCopy, 0},
      {abi::EventType::kGpuMemset, 0},
      {abi::EventType::kGpuGraph, 0},
      {abi::EventType::kApiCall, segment.AddText("cudaLaunchKernel")},
      {abi::EventType::kGpuStreamWait, 0},
      {abi::EventType::kGpuTracing, 0},
      {abi::EventType::kGpuLost, 0},
      {abi::EventType::kGpuMark, 0},
      {abi::EventType::kStep, 0},
      {abi::EventType::kNonFinite, 0},
      {abi::EventType::kTorchReserved, 0},
  };
  for (const auto& [type, python] : events) {
    abi::Event event = MakeEvent(type, 1);
    event.py_stack = python;
    if (type == abi::EventType::kApiCall) {
      event.api = abi::kRuntimeCallBase + 211;
    } else if (type >= abi::EventType::kGpuKernel &&
               type <= abi::EventType::kGpuStreamWait) {
      event.native_stack = stream;
    }
    segment.Commit(0, event);
  }
  abi::Event scope = MakeEvent(abi::EventType::kScope, 0);
  scope.native_stack = segment.AddScopeStack({segment.AddText("step"), 0});
  segment.Commit(0, scope);
  return SegmentSeed(segment);
}

std::vector<std::string> SegmentSeeds() { return {HostSeed(), GpuSeed()}; }

std::vector<std::string> LineTableSeeds() {
  std::vector<std::string> seeds;
  for (char minor : {8, 10, 11}) {
    std::string seed(1, minor);
    seed.append("\x05\x00\x00\x00\x08\x00\x00\x00", 8);
    seed.append("\x06\x02\x08\xff\xf1\x7f\x7f\x01\xd8\x80\x80\x04", 12);
    seeds.push_back(seed);
  }
  return seeds;
}

std::vector<std::string> SpoolSeeds() {
  SpoolState state;
  state.last_sequence = 4;
  state.rings[{1, 2}] = {70, 3, 900};
  lull::v1::Batch batch;
  batch.set_sequence(5);
  auto* run = batch.add_rings();
  run->set_process_key(1);
  run->set_ring(2);
  run->mutable_events()->set_first_position(70);
  run->mutable_events()->add_type(2);
  run->mutable_events()->add_tid(901);
  std::string file(kSpoolMagic);
  file += EncodeRecord(RecordKind::kCheckpoint, 4, state.Encode());
  file += EncodeRecord(RecordKind::kBatch, 5, batch.SerializeAsString());
  return {file};
}

std::vector<std::string> SymbolAnswerSeeds() {
  SymbolAnswer notice;
  notice.module = 4;
  SymbolAnswer answer;
  answer.number = 1;
  answer.is_elf = true;
  answer.address = 0x401136;
  answer.frames = {{"step(float*)", "steady.cu", 25}, {"main", "", 0}};
  return {EncodeSymbolAnswer(notice), EncodeSymbolAnswer(answer)};
}

std::vector<std::string> MapsSeeds() {
  return {
      "00400000-00452000 r-xp 00002000 08:02 173521      /usr/bin/program\n"
      "7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0                  [vdso]\n"};
}

// What batches have defined so far, by kind.
struct Defined {
  std::set<uint32_t> stacks, kernels, streams, devices;
};

void Collect(const lull::v1::Batch& batch, Defined* defined) {
  for (const auto& of_process : batch.stacks()) {
    for (const auto& stack : of_process.stacks()) defined->stacks.insert(stack.ref());
  }
  for (const auto& gpu : batch.gpus()) {
    for (const auto& kernel : gpu.kernels()) defined->kernels.insert(kernel.ref());
    for (const auto& stream : gpu.streams()) defined->streams.insert(stream.ref());
    for (const auto& device : gpu.devices()) defined->devices.insert(device.ref());
  }
}

bool NamesOnlyWhatIs(const Defined& defined, const lull::v1::Batch& batch) {
  static const std::set<uint32_t> kNone;
  auto known = [](const std::set<uint32_t>& refs, uint32_t ref) {
    return ref == 0 || refs.count(ref) != 0;
  };
  for (const auto& run : batch.rings()) {
    for (int i = 0; i < run.events().type_size(); ++i) {
      const std::set<uint32_t>* python = &kNone;
      const std::set<uint32_t>* native = &kNone;
      switch (run.events().type(i)) {
        case lull::v1::EVENT_TYPE_GPU_KERNEL:
          python = &defined.kernels;
          [[fallthrough]];
        case lull::v1::EVENT_TYPE_GPU_COPY:
        case lull::v1::EVENT_TYPE_GPU_MEMSET:
        case lull::v1::EVENT_TYPE_GPU_GRAPH:
        case lull::v1::EVENT_TYPE_GPU_STREAM_WAIT:
          native = &defined.streams;
          break;
        case lull::v1::EVENT_TYPE_GPU_DEVICE:
          python = &defined.devices;
          break;
        case lull::v1::EVENT_TYPE_API_CALL:
        case lull::v1::EVENT_TYPE_GPU_TRACING:
        case lull::v1::EVENT_TYPE_GPU_LOST:
        case lull::v1::EVENT_TYPE_GPU_MARK:
          break;
        default:
          python = native = &defined.stacks;
      }
      if (!known(*python, run.events().python_stack(i)) ||
          !known(*native, run.events().native_stack(i))) {
        return false;
      }
    }
  }
  return true;
}

// A collector takes it whole: one bad event must not hold up those of all others.
bool CollectorTakes(const std::set<uint32_t>& named, lull::v1::Batch batch) {
  batch.set_sequence(1);
  if (!collector::ValidateBatch(batch).ok()) return false;
  for (const auto& run : batch.rings()) {
    for (uint32_t api : run.events().api()) {
      if (api != 0 && !HelloNames(static_cast<uint16_t>(api)) &&
          named.count(api) == 0) {
        return false;
      }
    }
  }
  return true;
}

// A directory of this process, for the spool's files.
const std::string& Scratch() {
  static const std::string* path = [] {
    char name[] = "/tmp/lull-fuzz-XXXXXX";
    Require(mkdtemp(name) != nullptr);
    auto* made = new std::string(name);
    atexit([] { (void)RemoveTree(Scratch()); });
    return made;
  }();
  return *path;
}

}  // namespace

void FuzzSegment(std::string_view input) {
  static FakeSegment* segment = new FakeSegment;
  FillSegment(input, segment);
  SpoolState state;
  lull::v1::ProcessInfo info;
  info.set_key(1);
  auto target =
      Target::Open(info, UniqueFd(dup(segment->memfd())), UniqueFd(), {}, &state);
  Require(target.ok());
  BatchBuilder batch;
  Defined defined;
  std::set<uint32_t> named;
  for (int round = 0; round < 4; ++round) {
    bool all = (*target)->Read(&batch);
    (*target)->AddCounters(&batch, 1'000'000'000, true);
    Collect(*batch.batch(), &defined);
    Require(NamesOnlyWhatIs(defined, *batch.batch()));
    for (const auto& api : batch.batch()->apis()) named.insert(api.id());
    Require(CollectorTakes(named, *batch.batch()));
    Require(batch.batch()->ByteSizeLong() < (4u << 20));
    state.Apply(*batch.batch());
    (*target)->Commit();
    batch.Reset();
    if (all) break;
  }
  for (const auto& [key, ring] : state.rings) {
    Require(ring.lost_relay <= abi::kRingEvents || ring.lost_relay <= ring.end);
  }
}

void FuzzLineTable(std::string_view input) {
  if (input.size() < 9) return;
  int minor = 6 + input[0] % 10;
  int32_t numbers[2];
  memcpy(numbers, input.data() + 1, sizeof(numbers));
  int32_t line = LineOfInstruction(minor, numbers[0], input.substr(9), numbers[1]);
  Require(line >= 0);
}

void FuzzSpoolFile(std::string_view input) {
  std::string directory = Scratch() + "/spool";
  Require(MakePrivateDirectory(directory).ok());
  std::ofstream(directory + "/00000001.spool", std::ios::binary | std::ios::trunc)
      << input;
  {
    auto spool = Spool::Open(directory, 4u << 20);
    Require(spool.ok());
    lull::v1::Batch batch;
    batch.add_counters()->set_process_key(1);
    Require((*spool)->Append(&batch).ok());
    bool found = false;
    uint64_t after = 0;
    while (auto entry = (*spool)->WaitForNext(after, absl::ZeroDuration())) {
      Require(entry->sequence > after);
      after = entry->sequence;
      found = found || after == batch.sequence();
    }
    Require(found);  // whatever lay there does not hide what is appended
  }
  Require(RemoveTree(directory).ok());
}

void FuzzMaps(std::string_view input) {
  Maps maps = Maps::Parse(input);
  Maps again = Maps::Parse(maps.ToText());
  Require(again.mappings().size() == maps.mappings().size());
  for (const Mapping& mapping : maps.mappings()) maps.Find(mapping.start);
}

void FuzzSymbolAnswer(std::string_view input) {
  SymbolAnswer answer;
  if (!DecodeSymbolAnswer(input, &answer)) return;
  Require(answer.frames.size() <= kMaxSymbolFrames);
  for (const NativeFrame& frame : answer.frames) {
    Require(frame.line >= 0 && frame.function.size() <= kMaxSymbolText &&
            frame.file.size() <= kMaxSymbolText);
  }
  Require(EncodeSymbolAnswer(answer) == input);
}

const std::vector<FuzzTarget>& FuzzTargets() {
  static const auto* targets = new std::vector<FuzzTarget>{
      {"Segment", FuzzSegment, SegmentSeeds, 20'000},
      {"LineTable", FuzzLineTable, LineTableSeeds, 100'000},
      {"SpoolFile", FuzzSpoolFile, SpoolSeeds, 500},
      {"Maps", FuzzMaps, MapsSeeds, 50'000},
      {"SymbolAnswer", FuzzSymbolAnswer, SymbolAnswerSeeds, 100'000},
  };
  return *targets;
}

}  // namespace lull::relay
