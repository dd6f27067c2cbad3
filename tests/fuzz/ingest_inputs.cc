#include "tests/fuzz/ingest_inputs.h"

#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <stdlib.h>

#include <iterator>
#include <memory>

#include "daemon/base/event_views.h"
#include "daemon/collector/ingest/job_state.h"
#include "daemon/collector/ingest/validate.h"
#include "daemon/storage/store.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr uint64_t kInteresting[] = {0,
                                     1,
                                     2,
                                     7,
                                     8,
                                     250,
                                     254,
                                     255,
                                     4095,
                                     4096,
                                     65535,
                                     65536,
                                     0x7fffffff,
                                     0xffffffff,
                                     1ull << 32,
                                     (1ull << 63) - 1,
                                     1ull << 63,
                                     ~0ull,
                                     test::kJobStartNs};

storage::Store& FuzzStore() {
  static test::TemporaryDirectory* const directory = new test::TemporaryDirectory;
  static storage::Store* const store =
      storage::Store::Open(*directory / "fuzz.db").value().release();
  return *store;
}

void Require(const absl::Status& status) {
  if (!status.ok()) abort();  // a valid message that cannot be stored is a finding
}

bool Take(const lull::v1::IngestRequest& request) {
  storage::StoreWriter& writer = FuzzStore().writer();
  lull::v1::Hello hello =
      request.has_hello() ? request.hello() : test::MakeHello(test::MakeJobId(1));
  if (!ValidateHello(hello).ok()) return false;
  auto job = JobState::Load(writer, hello);
  Require(job.status());
  (*job)->Apply(hello);
  storage::BlockEncoder encoder;
  if (request.has_batch()) {
    lull::v1::Batch batch = request.batch();
    bool whole = TakeBadRunsOut(&batch).empty();
    if (!ValidateBatch(batch).ok()) return false;
    whole = (*job)->Apply(batch).empty() && whole;
    (*job)->Apply(batch);  // a duplicate changes nothing
    (*job)->PackFullRuns(encoder);
    if (!whole) {  // what is left is taken all the same
      Require(writer.Begin());
      Require((*job)->Flush(writer, 1));
      writer.Rollback();
      return false;
    }
  }
  Require(writer.Begin());
  Require((*job)->Flush(writer, 1));
  writer.Rollback();
  return true;
}

template <typename Random>
size_t Below(Random& random, size_t limit) {
  return limit == 0 ? 0 : random() % limit;
}

void SetNumber(Message& message, const FieldDescriptor* field, uint64_t value,
               int index) {
  const Reflection* r = message.GetReflection();
  switch (field->cpp_type()) {
#define LULL_SET(TYPE, METHOD, CAST)                                                \
  case FieldDescriptor::TYPE:                                                       \
    index < 0                                                                       \
        ? r->Set##METHOD(&message, field, static_cast<CAST>(value))                 \
        : r->SetRepeated##METHOD(&message, field, index, static_cast<CAST>(value)); \
    break
    LULL_SET(CPPTYPE_INT32, Int32, int32_t);
    LULL_SET(CPPTYPE_INT64, Int64, int64_t);
    LULL_SET(CPPTYPE_UINT32, UInt32, uint32_t);
    LULL_SET(CPPTYPE_UINT64, UInt64, uint64_t);
    LULL_SET(CPPTYPE_DOUBLE, Double, double);
    LULL_SET(CPPTYPE_BOOL, Bool, bool);
#undef LULL_SET
    case FieldDescriptor::CPPTYPE_STRING:
      if (index < 0) r->SetString(&message, field, std::string(value % 5000, 's'));
      break;
    default:
      break;
  }
}

void MutateRepeated(Message& message, const FieldDescriptor* field,
                    std::mt19937_64& random) {
  const Reflection* r = message.GetReflection();
  int size = r->FieldSize(message, field);
  size_t what = Below(random, 8);
  if (what == 0 && size > 0) return r->RemoveLast(&message, field);
  if (what == 1 && size > 1) {
    int other = static_cast<int>(Below(random, static_cast<size_t>(size)));
    return r->SwapElements(&message, field, 0, other);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (size == 0 || what == 2) {
      Message* added = r->AddMessage(&message, field);
      if (size > 0) added->CopyFrom(r->GetRepeatedMessage(message, field, 0));
      return;
    }
    int index = static_cast<int>(Below(random, static_cast<size_t>(size)));
    return MutateMessage(*r->MutableRepeatedMessage(&message, field, index), random);
  }
  if (size == 0) return;
  SetNumber(message, field, kInteresting[Below(random, std::size(kInteresting))],
            static_cast<int>(Below(random, static_cast<size_t>(size))));
}

}  // namespace

void MutateMessage(Message& message, std::mt19937_64& random) {
  const auto* descriptor = message.GetDescriptor();
  if (descriptor->field_count() == 0) return;
  const FieldDescriptor* field = descriptor->field(
      static_cast<int>(Below(random, static_cast<size_t>(descriptor->field_count()))));
  if (field->is_repeated()) return MutateRepeated(message, field, random);
  const Reflection* r = message.GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    // Of a oneof, only the member that is set: the other would throw this one away.
    if (field->containing_oneof() != nullptr && !r->HasField(message, field)) return;
    return MutateMessage(*r->MutableMessage(&message, field), random);
  }
  SetNumber(message, field, kInteresting[Below(random, std::size(kInteresting))], -1);
}

bool FuzzIngest(std::string_view input) {
  google::protobuf::LogSilencer quiet;
  lull::v1::IngestRequest request;
  if (!request.ParseFromArray(input.data(), static_cast<int>(input.size())))
    return false;
  return Take(request);
}

std::vector<lull::v1::IngestRequest> IngestSeeds() {
  std::vector<lull::v1::IngestRequest> seeds(3);
  *seeds[0].mutable_hello() = test::MakeHello(test::MakeJobId(1), "name");
  lull::v1::Batch& batch = *seeds[1].mutable_batch();
  batch.set_sequence(1);
  *batch.add_processes() = test::MakeProcess(1, 100, 0);
  test::AddStacks(batch, 1);
  std::vector<test::TestEvent> events;
  for (uint32_t i = 0; i < 24; ++i) {
    test::TestEvent event;
    event.type = 1 + i % 8;
    event.api = i % (test::kApiCount + 1);
    event.python = i % (test::kPythonStacks + 2);
    event.flags = i % 3 == 0 ? 1 : 0;
    event.start_ns += i * 1'000'000'000;
    MemoryView{event}.set_address(4096 * (i % 4)).set_bytes(100 * i);
    events.push_back(event);
  }
  test::AddRun(batch, 1, 0, 0, events);
  test::AddRun(batch, 1, 1, 7, events);
  test::AddRun(batch, 2, 0, 0, events);
  test::AddCounters(batch, 1, 0, 24, 10);
  lull::v1::Batch& last = *seeds[2].mutable_batch();
  last.set_sequence(2);
  test::AddRun(last, 1, 0, 12, events);
  lull::v1::Batch::Stacks& columns = *last.add_stacks();
  columns.set_process_key(1);
  for (uint32_t i = 0; i < 4; ++i) {
    lull::v1::Frame& frame = *columns.add_frames();
    frame.set_function(std::string(1, static_cast<char>('f' + i)));
    frame.set_file("/home/u/train.py");
    frame.set_line(static_cast<int32_t>(i));
    columns.add_stacks()->set_ref(i + 1);
    columns.add_depths(i);
    for (uint32_t frames = 0; frames < i; ++frames) columns.add_frame_numbers(frames);
  }
  columns.add_stacks()->set_ref(5);  // with a frame of its own
  columns.mutable_stacks(4)->add_frames()->set_function("g");
  columns.add_depths(0);
  last.add_process_ends()->set_process_key(1);
  last.mutable_job_end()->set_end_ns(test::kJobStartNs + 5);
  return seeds;
}

}  // namespace lull::collector
