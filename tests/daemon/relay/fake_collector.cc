#include "tests/daemon/relay/fake_collector.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lull::relay {

FakeCollector::FakeCollector(std::string address) : address_(std::move(address)) {}
FakeCollector::~FakeCollector() { Stop(); }

void FakeCollector::Start() {
  unlink(address_.substr(5).c_str());  // behind "unix:"
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) abort();
}

void FakeCollector::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void FakeCollector::RequireToken(std::string token) {
  std::lock_guard lock(mutex_);
  token_ = std::move(token);
}

void FakeCollector::StopAcknowledging(bool stop) {
  std::lock_guard lock(mutex_);
  silent_ = stop;
}

void FakeCollector::BreakAfter(int batches) {
  std::lock_guard lock(mutex_);
  break_after_ = batches;
}

void FakeCollector::Refuse(std::function<bool(const lull::v1::Batch&)> refuses) {
  std::lock_guard lock(mutex_);
  refuses_ = std::move(refuses);
}

void FakeCollector::Command(lull::v1::ArmCommand command) {
  std::lock_guard lock(mutex_);
  command_ = std::move(command);
  lull::v1::IngestReply reply;
  *reply.mutable_arm() = *command_;
  if (stream_ != nullptr) stream_->Write(reply);
}

bool FakeCollector::commanded() const {
  std::lock_guard lock(mutex_);
  return command_.has_value();
}

// Under the lock: one write at a time.
void FakeCollector::Send(ReplyStream* stream, uint64_t acknowledged) {
  std::lock_guard lock(mutex_);
  lull::v1::IngestReply reply;
  reply.set_acknowledged_sequence(acknowledged);
  if (command_) *reply.mutable_arm() = *command_;
  stream->Write(reply);
}

Collected FakeCollector::collected() const {
  std::lock_guard lock(mutex_);
  return collected_;
}

bool FakeCollector::WaitForJobEnd(absl::Duration timeout) const {
  std::unique_lock lock(mutex_);
  return job_ended_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                             [this] { return collected_.job_end.has_value(); });
}

grpc::Status FakeCollector::Stream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<lull::v1::IngestReply, lull::v1::IngestRequest>* stream) {
  {
    std::lock_guard lock(mutex_);
    ++collected_.streams;
    auto metadata = context->client_metadata().find("authorization");
    if (!token_.empty() &&
        (metadata == context->client_metadata().end() ||
         std::string(metadata->second.data(), metadata->second.size()) !=
             "Bearer " + token_)) {
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "wrong token");
    }
  }
  lull::v1::IngestRequest request;
  if (!stream->Read(&request)) return grpc::Status::OK;
  if (!request.has_hello()) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "no hello");
  }
  {
    std::lock_guard lock(mutex_);
    collected_.hello = request.hello();
    if (request.hello().has_arming()) collected_.arming = request.hello().arming();
    stream_ = stream;
  }
  struct Closer {
    FakeCollector* collector;
    ReplyStream* stream;
    ~Closer() {
      std::lock_guard lock(collector->mutex_);
      if (collector->stream_ == stream) collector->stream_ = nullptr;
    }
  } closer{this, stream};
  if (commanded()) Send(stream, 0);
  int batches = 0;
  while (stream->Read(&request)) {
    bool silent;
    {
      std::lock_guard lock(mutex_);
      if (request.has_arming()) {
        collected_.arming = request.arming();
        continue;
      }
      if (refuses_ != nullptr && refuses_(request.batch())) {
        ++collected_.refused;
        return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "rings.events is bad");
      }
      Store(request.batch());
      if (break_after_ > 0 && ++batches >= break_after_) {
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken on purpose");
      }
      silent = silent_;
    }
    if (!silent) Send(stream, request.batch().sequence());
  }
  return grpc::Status::OK;
}

void FakeCollector::CheckRefs(uint64_t key, const lull::v1::EventColumns& events,
                              int index) {
  auto require = [&](const auto& defined, uint32_t ref, const char* what) {
    if (ref == 0 || defined.count({key, ref}) != 0) return;
    collected_.violations.push_back(absl::StrCat(what, " ", ref, " is not defined"));
  };
  uint32_t python = events.python_stack(index);
  uint32_t native = events.native_stack(index);
  uint32_t type = events.type(index);
  bool on_stream = false;
  bool of_gpu = false;
  switch (type) {
    case lull::v1::EVENT_TYPE_GPU_KERNEL:
      require(collected_.kernels, python, "kernel");
      return require(collected_.gpu_streams, native, "stream");
    case lull::v1::EVENT_TYPE_GPU_DEVICE:
      return require(collected_.gpu_devices, python, "device");
    case lull::v1::EVENT_TYPE_GPU_COPY:
    case lull::v1::EVENT_TYPE_GPU_MEMSET:
    case lull::v1::EVENT_TYPE_GPU_GRAPH:
    case lull::v1::EVENT_TYPE_GPU_STREAM_WAIT:
      on_stream = true;
      break;
    case lull::v1::EVENT_TYPE_API_CALL:
    case lull::v1::EVENT_TYPE_GPU_TRACING:
    case lull::v1::EVENT_TYPE_GPU_LOST:
    case lull::v1::EVENT_TYPE_GPU_MARK:
      of_gpu = true;
      break;
    default:
      require(collected_.stacks, python, "stack");
      return require(collected_.stacks, native, "stack");
  }
  if (on_stream) require(collected_.gpu_streams, native, "stream");
  if (python != 0 || (of_gpu && native != 0)) {
    collected_.violations.push_back(
        absl::StrCat("an event of type ", type, " has a reference that it has not"));
  }
}

void FakeCollector::StoreRing(const lull::v1::RingBatch& run) {
  const lull::v1::EventColumns& events = run.events();
  int size = events.type_size();
  for (int column : {events.start_delta_ns_size(), events.duration_ns_size(),
                     events.flags_size(), events.api_size(), events.python_stack_size(),
                     events.native_stack_size(), events.arg0_size(), events.arg1_size(),
                     events.arg2_size(), events.tid_size()}) {
    if (column != size) collected_.violations.push_back("columns of unequal length");
  }
  Collected::Ring& ring = collected_.rings[{run.process_key(), run.ring()}];
  if (events.first_position() > ring.end) {
    ring.skipped += events.first_position() - ring.end;
    ring.end = events.first_position();
  }
  for (int i = 0; i < size; ++i) {
    CheckRefs(run.process_key(), events, i);
    if (events.first_position() + i < ring.end) continue;  // stored before
    ring.end = events.first_position() + i + 1;
    ring.values.push_back(events.arg0(i));
    ring.tids.push_back(events.tid(i));
    ring.types.push_back(events.type(i));
    ring.python_stacks.push_back(events.python_stack(i));
  }
}

void FakeCollector::Store(const lull::v1::Batch& batch) {
  ++collected_.batches;
  if (batch.sequence() > collected_.last_sequence + 1) {
    collected_.violations.push_back(absl::StrCat("sequence ", batch.sequence(),
                                                 " after ", collected_.last_sequence));
  }
  if (batch.ByteSizeLong() > (4u << 20)) collected_.violations.push_back("too large");
  collected_.last_sequence = std::max(collected_.last_sequence, batch.sequence());
  collected_.set_aside = std::max(collected_.set_aside, batch.set_aside());
  for (const auto& process : batch.processes()) {
    collected_.processes[process.key()] = process;
  }
  for (const auto& stacks : batch.stacks()) {
    for (const auto& stack : stacks.stacks()) {
      collected_.stacks[{stacks.process_key(), stack.ref()}] = stack;
    }
  }
  for (const auto& gpu : batch.gpus()) {
    uint64_t key = gpu.process_key();
    for (const auto& def : gpu.kernels()) collected_.kernels[{key, def.ref()}] = def;
    for (const auto& def : gpu.streams()) {
      collected_.gpu_streams[{key, def.ref()}] = def;
    }
    for (const auto& def : gpu.devices()) {
      collected_.gpu_devices[{key, def.ref()}] = def;
    }
  }
  for (const auto& stretch : batch.stretches()) {
    collected_.stretches[stretch.number()] = stretch;
  }
  for (const auto& api : batch.apis()) collected_.apis[api.id()] = api;
  for (const auto& run : batch.rings()) {
    if (collected_.processes.count(run.process_key()) == 0) {
      collected_.violations.push_back("events of an unknown process");
    }
    StoreRing(run);
  }
  for (const auto& counters : batch.counters()) {
    collected_.counters[counters.process_key()] = counters;
  }
  for (const auto& end : batch.process_ends())
    collected_.ended.insert(end.process_key());
  if (!batch.has_job_end()) return;
  collected_.job_end = batch.job_end();
  job_ended_.notify_all();
}

}  // namespace lull::relay
