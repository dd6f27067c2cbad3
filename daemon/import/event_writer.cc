#include "daemon/import/event_writer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "daemon/import/api_names.h"
#include "daemon/relay/samples/run_delay.h"

namespace lull::imports {
namespace {

constexpr uint32_t kRing = 0;
constexpr size_t kBatchBytes = 1 << 20;

// Streams of ROCm are addresses: told apart by number.
constexpr uint64_t kMostStreamId = 0x7fffffff;

bool Test(std::vector<bool>* bits, size_t at) {
  if (bits->size() <= at) bits->resize(std::max(at + 1, 2 * bits->size()));
  const bool was = (*bits)[at];
  (*bits)[at] = true;
  return was;
}

}  // namespace

uint16_t ApiTable::IdOf(const std::string& name, bool* fresh) {
  auto known = ids_.find(name);
  *fresh = known == ids_.end();
  if (!*fresh) return known->second;
  const size_t next = kFirst + ids_.size();
  // The last one stands for all that there is no number left for.
  const auto id = static_cast<uint16_t>(std::min<size_t>(next, kLast));
  ids_[name] = id;
  return id;
}

EventWriter::EventWriter(Trace& trace, uint64_t key, ApiTable& apis,
                         const BatchSink& sink)
    : trace_(trace), key_(key), apis_(apis), sink_(sink) {}

uint32_t EventWriter::Ref(const StackTable& table, uint32_t node, Told* told) {
  if (node == 0 || Test(&told->stacks, node)) return table.Ref(node);
  v1::StackDef definition = table.Define(node, &places_);
  told->frames.resize(table.places());
  for (uint32_t& place : places_) {
    uint32_t& number = told->frames[place];
    if (number == 0) {
      number = batch_.AddFrame(key_, table.FrameAt(place, trace_.strings)) + 1;
    }
    place = number - 1;
  }
  batch_.AddStackOfFrames(key_, std::move(definition), places_);
  return table.Ref(node);
}

uint32_t EventWriter::KernelRef(uint32_t kernel) {
  if (!Test(&kernels_defined_, kernel)) {
    v1::KernelDef definition = trace_.kernels[kernel];
    definition.set_ref(kernel + 1);
    batch_.AddKernel(key_, std::move(definition));
  }
  return kernel + 1;
}

uint32_t EventWriter::StreamRef(uint32_t stream) {
  if (!Test(&streams_defined_, stream)) {
    const Stream& from = trace_.streams[stream];
    v1::GpuStreamDef definition;
    definition.set_ref(stream + 1);
    definition.set_device(from.device);
    definition.set_context(from.context);
    definition.set_stream(static_cast<uint32_t>(
        from.stream <= kMostStreamId ? from.stream : kMostStreamId + 1 + stream));
    batch_.AddGpuStream(key_, definition);
  }
  return stream + 1;
}

uint16_t EventWriter::Api(uint32_t name, CallKind kind) {
  if (api_of_name_.size() <= name) api_of_name_.resize(trace_.strings.size());
  uint16_t& id = api_of_name_[name];
  if (id != 0) return id;
  bool fresh = false;
  id = apis_.IdOf(trace_.strings[name], &fresh);
  if (fresh) {
    v1::ApiName api;
    api.set_id(id);
    api.set_name(trace_.strings[name]);
    api.set_family(FamilyOf(kind));
    batch_.AddApi(std::move(api));
  }
  return id;
}

void EventWriter::Write(const abi::Event& event, uint32_t tid) {
  batch_.AddEvents(key_, kRing, next_++, &event, 1, tid);
  calls_ += event.type == abi::EventType::kLaunch ||
            event.type == abi::EventType::kGpuKernel ||
            event.type == abi::EventType::kSync;
  tensors_ += event.type == abi::EventType::kTorchMemory;
}

void EventWriter::WriteSample(const abi::Event& event, uint32_t tid) {
  batch_.AddEvents(key_, relay::kRelayRing, next_sample_++, &event, 1, tid);
}

bool EventWriter::full() const { return batch_.approximate_bytes() >= kBatchBytes; }

absl::Status EventWriter::Flush(uint64_t time_ns) {
  v1::ProcessCounters counters;
  counters.set_process_key(key_);
  counters.set_as_of_ns(time_ns);
  counters.set_gpu_calls(calls_);
  counters.set_torch_allocations(tensors_);
  for (const auto& [ring, committed] :
       {std::pair{kRing, next_}, std::pair{relay::kRelayRing, next_sample_}}) {
    if (committed == 0) continue;
    v1::RingCounters* totals = counters.add_rings();
    totals->set_ring(ring);
    totals->set_committed(committed);
  }
  batch_.AddCounters(std::move(counters));
  absl::Status sent = sink_(batch_.batch());
  batch_.Reset();
  python_told_.frames.clear();
  native_told_.frames.clear();
  return sent;
}

absl::Status EventWriter::Send(uint64_t time_ns) {
  abi::Event mark = {};
  mark.type = abi::EventType::kGpuMark;
  mark.start_ns = time_ns;
  Write(mark, 0);
  marked_ns_ = time_ns;
  return Flush(time_ns);
}

// A trace lists all devices of the machine, and names those that it used by a number
// that ROCm does not count from 0: there, by order.
void EventWriter::DefineDevices() {
  std::set<uint32_t> used;
  for (const Stream& stream : trace_.streams) used.insert(stream.device);
  size_t order = 0;
  for (uint32_t device : used) {
    v1::GpuDeviceDef definition;
    const v1::GpuDeviceDef* told = nullptr;
    const size_t place = order++;
    if (!trace_.devices.empty() && absl::StartsWith(trace_.devices[0].name(), "AMD")) {
      told = &trace_.devices[std::min(place, trace_.devices.size() - 1)];
    } else {
      auto same = [device](const auto& one) { return one.device() == device; };
      auto found = std::find_if(trace_.devices.begin(), trace_.devices.end(), same);
      if (found != trace_.devices.end()) told = &*found;
    }
    if (told != nullptr) definition = *told;
    definition.set_ref(static_cast<uint32_t>(place + 1));
    definition.set_device(device);
    batch_.AddGpuDevice(key_, std::move(definition));
  }
}

absl::Status EventWriter::SendEnd(uint64_t end_ns, const v1::ProcessInfo& process) {
  DefineDevices();
  batch_.AddProcess(process);
  batch_.AddProcessEnd(key_, end_ns);
  return Flush(end_ns);
}

}  // namespace lull::imports
