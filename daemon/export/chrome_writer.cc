#include "daemon/export/chrome_writer.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace lull::exports {
namespace {

// Idle time, below the streams.
constexpr int64_t kIdleTid = 999'999;
// Devices of several processes in one file: their numbers would meet.
constexpr int64_t kFirstDevicePid = 1'000'000'000;
constexpr int64_t kDevicesOfAProcess = 1024;

void AppendMicroseconds(uint64_t ns, std::string* out) {
  const uint64_t rest = ns % 1000;
  const char digits[] = {'.', static_cast<char>('0' + rest / 100),
                         static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  absl::StrAppend(out, ns / 1000, absl::string_view(digits, sizeof(digits)));
}

}  // namespace

void AppendEscaped(std::string_view text, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20) {
      out->append("\\u00");
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    } else {
      out->push_back(c);
    }
  }
}

void ChromeWriter::Begin(const ExportedJob& job) {
  job_ = job;
  out_ += "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\"";
  if (job.start_realtime_ns != 0) {
    absl::StrAppend(&out_, ",\"baseTimeNanoseconds\":", job.start_realtime_ns);
  }
  // "rank": N with a space, or HTA does not find it.
  const int32_t rank = job.processes.empty() ? -1 : job.processes[0].rank;
  const bool one_rank =
      absl::c_all_of(job.processes, [rank](const auto& p) { return p.rank == rank; });
  if (one_rank && rank >= 0) {
    absl::StrAppend(&out_, ",\"distributedInfo\":{\"rank\": ", rank, "}");
  }
  // Workers have none.
  own_devices_ = absl::c_count_if(job.processes, [](const auto& process) {
                   return !process.devices.empty();
                 }) <= 1;
  out_ += ",\"deviceProperties\":[";
  bool first = true;
  for (const ExportedProcess& process : job.processes) {
    if (!first) break;
    for (const lull::v1::GpuDeviceDef& device : process.devices) {
      absl::StrAppend(&out_, first ? "" : ",", "{\"id\":", device.device(),
                      ",\"name\":\"");
      first = false;
      AppendEscaped(device.name(), &out_);
      absl::StrAppend(
          &out_, "\",\"totalGlobalMem\":", device.total_bytes(),
          ",\"computeMajor\":", device.compute_capability() / 10,
          ",\"computeMinor\":", device.compute_capability() % 10,
          ",\"maxThreadsPerMultiprocessor\":", device.max_threads_per_multiprocessor(),
          ",\"regsPerMultiprocessor\":", device.max_registers_per_multiprocessor(),
          ",\"warpSize\":", device.warp_size(), ",\"sharedMemPerMultiprocessor\":",
          device.max_shared_bytes_per_multiprocessor(),
          ",\"numSms\":", device.multiprocessors(), "}");
    }
  }
  out_ += "],\"traceName\":\"";
  AppendEscaped(job.name, &out_);
  out_ += "\",\"traceEvents\":[\n";
}

void ChromeWriter::BeginProcess(const ExportedProcess& process) {
  process_ = process;
  parts_.clear();
  tids_.clear();
  rows_.clear();
}

int64_t ChromeWriter::DevicePid(uint32_t device) const {
  if (own_devices_) return device;
  return kFirstDevicePid + kDevicesOfAProcess * process_.index + device;
}

void ChromeWriter::Separate() {
  output_.Checkpoint();
  if (!first_) out_ += ",\n";
  first_ = false;
}

const ChromeWriter::Parts& ChromeWriter::PartsOf(uint32_t id, const Label& label) {
  if (parts_.size() <= id) parts_.resize(std::max<size_t>(id + 1, 2 * parts_.size()));
  Parts& parts = parts_[id];
  if (!parts.head.empty()) return parts;
  parts.head = "{\"ph\":\"X\",\"cat\":\"";
  AppendEscaped(label.category, &parts.head);
  parts.head += "\",\"pid\":";
  if (label.row == Row::kStream || label.row == Row::kIdle) {
    const int64_t tid = label.row == Row::kIdle ? kIdleTid : int64_t{label.stream};
    rows_[label.device].insert(tid);
    absl::StrAppend(&parts.head, DevicePid(label.device), ",\"tid\":", tid);
  } else {
    absl::StrAppend(&parts.head, process_.shown_pid);
  }
  parts.head += ",\"name\":\"";
  AppendEscaped(label.name, &parts.head);
  // The number of a step follows.
  if (label.row != Row::kSteps) parts.head += '"';
  if (label.wasted) parts.head += ",\"cname\":\"terrible\"";  // red
  auto begin = [&](const char* key) {
    absl::StrAppend(&parts.tail, parts.has_arguments ? "," : "", "\"", key, "\":");
    parts.has_arguments = true;
  };
  for (const auto& [key, text] : label.texts) {
    begin(key);
    parts.tail += '"';
    AppendEscaped(text, &parts.tail);
    parts.tail += '"';
  }
  for (const auto& [key, number] : label.numbers) {
    begin(key);
    absl::StrAppend(&parts.tail, number);
  }
  for (const auto& [key, shape] : label.shapes) {
    begin(key);
    absl::StrAppend(&parts.tail, "[", shape[0], ",", shape[1], ",", shape[2], "]");
  }
  return parts;
}

void ChromeWriter::Add(uint32_t id, const Label& label, const Slice& slice) {
  const Parts& parts = PartsOf(id, label);
  Separate();
  out_ += parts.head;
  if (label.row == Row::kSteps) absl::StrAppend(&out_, slice.number, "\"");
  if (label.row != Row::kStream && label.row != Row::kIdle) {
    absl::StrAppend(&out_, ",\"tid\":", slice.tid);
    tids_.insert(slice.tid);
  }
  out_ += ",\"ts\":";
  AppendMicroseconds(slice.start_ns, &out_);
  out_ += ",\"dur\":";
  AppendMicroseconds(slice.duration_ns, &out_);
  out_ += ",\"args\":{";
  out_ += parts.tail;
  bool more = parts.has_arguments;
  auto add = [&](absl::string_view key, uint64_t value) {
    absl::StrAppend(&out_, more ? "," : "", "\"", key, "\":", value);
    more = true;
  };
  if (label.amount != nullptr) add(label.amount, slice.amount);
  if (slice.correlation != 0) add("correlation", slice.correlation);
  out_ += "}}";
  if (slice.correlation == 0) return;
  // A flow is bound to the slice that is open, so it comes behind.
  AddFlow(label.row == Row::kStream ? "f\",\"bp\":\"e" : "s", label, slice);
}

void ChromeWriter::AddFlow(const char* phase, const Label& label, const Slice& slice) {
  Separate();
  const bool stream = label.row == Row::kStream;
  absl::StrAppend(&out_, "{\"ph\":\"", phase, "\",\"cat\":\"ac2g\",\"name\":\"ac2g\",");
  // Ids of two processes meet.
  const uint64_t others = own_devices_ ? 0 : uint64_t{process_.index} << 32;
  absl::StrAppend(&out_, "\"id\":", others | slice.correlation,
                  ",\"pid\":", stream ? DevicePid(label.device) : process_.shown_pid,
                  ",\"tid\":", stream ? label.stream : slice.tid, ",\"ts\":");
  AppendMicroseconds(slice.start_ns, &out_);
  out_ += '}';
}

void ChromeWriter::AddMemory(const TensorMemory& memory) {
  Separate();
  tids_.insert(memory.tid);
  absl::StrAppend(&out_, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",");
  absl::StrAppend(&out_, "\"name\":\"[memory]\",\"pid\":", process_.shown_pid,
                  ",\"tid\":", memory.tid, ",\"ts\":");
  AppendMicroseconds(memory.time_ns, &out_);
  absl::StrAppend(&out_, ",\"args\":{\"Addr\":", memory.address,
                  ",\"Bytes\":", memory.bytes, ",\"Device Type\":", memory.device_type,
                  ",\"Device Id\":", memory.device, "}}");
}

void ChromeWriter::AddMeasure(Measure measure, uint32_t device, uint64_t time_ns,
                              double value) {
  Separate();
  absl::StrAppend(&out_, "{\"ph\":\"C\",\"name\":\"", NameOf(measure), "\",\"pid\":",
                  IsOfDevice(measure) ? DevicePid(device) : process_.shown_pid,
                  ",\"ts\":");
  AppendMicroseconds(time_ns, &out_);
  if (measure == Measure::kBusy) {
    absl::StrAppend(&out_, ",\"args\":{\"%\":", value, "}}");
  } else {
    absl::StrAppend(&out_, ",\"args\":{\"bytes\":", static_cast<int64_t>(value), "}}");
  }
}

void ChromeWriter::AddUntraced(uint64_t start_ns, uint64_t end_ns) {
  for (const auto& device : process_.devices) {
    Separate();
    rows_[device.device()].insert(kIdleTid);
    absl::StrAppend(&out_, "{\"ph\":\"X\",\"cat\":\"lull_untraced\",",
                    "\"name\":\"not traced\",\"pid\":", DevicePid(device.device()),
                    ",\"tid\":", kIdleTid, ",\"ts\":");
    AppendMicroseconds(start_ns, &out_);
    out_ += ",\"dur\":";
    AppendMicroseconds(end_ns - start_ns, &out_);
    out_ += "}";
  }
}

void ChromeWriter::AddName(const char* what, int64_t pid, int64_t tid,
                           const std::string& name) {
  Separate();
  absl::StrAppend(&out_, "{\"ph\":\"M\",\"name\":\"", what, "\",\"pid\":", pid,
                  ",\"tid\":", tid, ",\"ts\":0,\"args\":{\"name\":\"");
  AppendEscaped(name, &out_);
  out_ += "\"}}";
}

void ChromeWriter::EndProcess() {
  const std::string rank =
      process_.rank >= 0 ? absl::StrCat("rank ", process_.rank, " ") : "";
  AddName("process_name", process_.shown_pid, 0, process_.title());
  for (uint32_t tid : tids_) {
    AddName("thread_name", process_.shown_pid, tid, absl::StrCat("thread ", tid));
  }
  for (const auto& [device, tids] : rows_) {
    AddName("process_name", DevicePid(device), 0, absl::StrCat(rank, "GPU ", device));
    for (int64_t tid : tids) {
      AddName("thread_name", DevicePid(device), tid,
              tid == kIdleTid ? "idle, by cause" : absl::StrCat("stream ", tid));
    }
  }
}

void ChromeWriter::End() { out_ += "\n]}\n"; }

}  // namespace lull::exports
