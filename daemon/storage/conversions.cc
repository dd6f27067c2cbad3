#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/base/status.h"
#include "daemon/storage/schema.h"
#include "events.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "ingest.pb.h"

namespace lull::storage {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Columns that became the fields of a message in one column.
struct Packing {
  const char* table;
  const char* column;
  const Message& message;
  // Names of the columns, each with ":FIELD" where its field has another one, and "+"
  // in front where it stays.
  const char* from;
};

std::vector<Packing> PackingsOfSchema7() {
  return {{"processes", "counters", v1::ProcessCounters::default_instance(),
           "lost_no_ring stacks_rejected reentered gpu_calls torch_allocations "
           "native_stacks gc_hook thinning corrupt as_of_ns cupti_state cupti_version "
           "cupti_result step_hook cupti_dropped gpu_records_lost gpu_records_bad "
           "gpu_self_ns"}};
}

std::vector<Packing> PackingsOfSchema11() {
  return {{"jobs", "job_info", v1::JobInfo::default_instance(),
           "+uuid:id name command host user lull_version start_ns +start_realtime_ns "
           "budget:overhead_budget_percent gpu_mode gpu_schedule dormant attached "
           "no_host_samples"},
          {"jobs", "job_end", v1::JobEnd::default_instance(),
           "end_ns exit_status exit_status_known:known relay_cpu_ns "
           "unrecorded:unrecorded_processes cut_off unreachable_ns"},
          {"processes", "process_info", v1::ProcessInfo::default_instance(),
           "+key pid parent_pid start_ns command executable python_version rank "
           "local_rank worker_of"},
          {"rings", "counters", v1::RingCounters::default_instance(),
           "+ring committed lost_full lost_relay self_ns short_waits short_waits_ns "
           "thinned_launches"},
          {"gpu_devices", "def", v1::GpuDeviceDef::default_instance(),
           "+device name multiprocessors max_threads:max_threads_per_multiprocessor "
           "max_blocks:max_blocks_per_multiprocessor "
           "max_registers:max_registers_per_multiprocessor "
           "max_shared:max_shared_bytes_per_multiprocessor warp_size "
           "compute_capability total_bytes"}};
}

// What leads from one schema to the next, the oldest first.
struct Step {
  const char* script;
  std::vector<Packing> (*then)() = nullptr;
};
constexpr Step kSteps[] = {
    // 5: there were no jobs that sleep.
    {R"sql(
ALTER TABLE jobs ADD COLUMN dormant INT NOT NULL DEFAULT 0;
CREATE TABLE stretches(job INT, number INT, start_ns INT, end_ns INT,
  PRIMARY KEY(job, number)) WITHOUT ROWID;
)sql"},
    // 6: an attached job was like any other. No blob had kForgotten.
    {"ALTER TABLE jobs ADD COLUMN attached INT NOT NULL DEFAULT 0;"},
    // 7: counters were columns; no job said what it could not record.
    {"ALTER TABLE jobs ADD COLUMN unrecorded INT NOT NULL DEFAULT 0;",
     PackingsOfSchema7},
    // 8: ages were told by CLOCK_REALTIME, and nothing was said of how a job ended.
    {R"sql(
ALTER TABLE jobs RENAME COLUMN touched_realtime_ns TO touched_ns;
ALTER TABLE jobs ADD COLUMN cut_off INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN set_aside INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN unreachable_ns INT NOT NULL DEFAULT 0;
CREATE TABLE clock(id INTEGER PRIMARY KEY, now_ns INT, realtime_ns INT,
  boottime_ns INT, boot_id TEXT);
)sql"},
    // 9: no thread was sampled.
    {R"sql(
ALTER TABLE jobs ADD COLUMN no_host_samples INT NOT NULL DEFAULT 0;
ALTER TABLE processes ADD COLUMN worker_of INT NOT NULL DEFAULT 0;
)sql"},
    // 10: backward work had no sites of its own.
    {R"sql(
ALTER TABLE sites ADD COLUMN backward_of INT NOT NULL DEFAULT 0;
ALTER TABLE sites ADD COLUMN forward INT NOT NULL DEFAULT 0;
)sql"},
    // 11: what relays tell of jobs, processes, rings and devices was columns.
    {"", PackingsOfSchema11},
    // 12: no series had kVariantDrawn or kVariantUndrawn.
    {""},
    // 13: no source text was kept.
    {"CREATE TABLE sources(job INT, id INT, def BLOB, PRIMARY KEY(job, id)) WITHOUT "
     "ROWID;"},
    // 14: jobs had no tags, and no job was pinned.
    {"ALTER TABLE jobs ADD COLUMN marks BLOB;"},
    // 15: no job was a part of a run on several hosts.
    {R"sql(
ALTER TABLE jobs ADD COLUMN run TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_by_run ON jobs(run) WHERE run<>'';
CREATE TABLE clock_readings(job INT, second INT, reading BLOB,
  PRIMARY KEY(job, second)) WITHOUT ROWID;
)sql"},
    // 16: no step was a control step.
    {"ALTER TABLE steps ADD COLUMN rested_ns INT NOT NULL DEFAULT 0;"},
};
static_assert(kOldestSchema + std::size(kSteps) == kSchemaVersion);

std::string_view TextOf(sqlite3_value* value) {
  const void* text = sqlite3_value_blob(value);
  if (text == nullptr) return {};
  return {static_cast<const char*>(text),
          static_cast<size_t>(sqlite3_value_bytes(value))};
}

// False for a field that is of no kind that a column could have.
bool SetField(Message& message, const FieldDescriptor& field, sqlite3_value* value) {
  const auto& reflection = *message.GetReflection();
  const int64_t number = sqlite3_value_int64(value);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      reflection.SetInt32(&message, &field, static_cast<int32_t>(number));
      return true;
    case FieldDescriptor::CPPTYPE_UINT32:
      reflection.SetUInt32(&message, &field, static_cast<uint32_t>(number));
      return true;
    case FieldDescriptor::CPPTYPE_UINT64:
      reflection.SetUInt64(&message, &field, static_cast<uint64_t>(number));
      return true;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnumValue(&message, &field, static_cast<int>(number));
      return true;
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.SetBool(&message, &field, number != 0);
      return true;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection.SetDouble(&message, &field, sqlite3_value_double(value));
      return true;
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.SetString(&message, &field, std::string(TextOf(value)));
      return true;
    default:
      return false;
  }
}

// pack(MESSAGE, FIELD, VALUE, FIELD, VALUE, ...): a message of ours as bytes.
void Pack(sqlite3_context* context, int count, sqlite3_value** values) {
  const auto* type =
      count == 0
          ? nullptr
          : google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
                std::string(TextOf(values[0])));
  if (type == nullptr) return sqlite3_result_error(context, "no such message", -1);
  std::unique_ptr<Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  for (int i = 1; i + 1 < count; i += 2) {
    const auto* field = type->FindFieldByName(std::string(TextOf(values[i])));
    if (field == nullptr || !SetField(*message, *field, values[i + 1])) {
      return sqlite3_result_error(context, "no such field", -1);
    }
  }
  const std::string bytes = message->SerializeAsString();
  sqlite3_result_blob64(context, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
}

std::string ScriptOf(const Packing& packing) {
  std::string set, drop;
  for (absl::string_view column : absl::StrSplit(packing.from, ' ')) {
    const bool stays = absl::ConsumePrefix(&column, "+");
    std::pair<absl::string_view, absl::string_view> names =
        absl::StrSplit(column, absl::MaxSplits(':', 1));
    absl::StrAppend(&set, ",'", names.second.empty() ? names.first : names.second, "',",
                    names.first);
    if (stays) continue;
    absl::StrAppend(&drop, "ALTER TABLE ", packing.table, " DROP COLUMN ", names.first,
                    ";");
  }
  return absl::StrCat("ALTER TABLE ", packing.table, " ADD COLUMN ", packing.column,
                      " BLOB; UPDATE ", packing.table, " SET ", packing.column,
                      "=pack('", packing.message.GetTypeName(), "'", set, ");", drop);
}

absl::Status RunSteps(Database& db, int64_t version) {
  for (; version < kSchemaVersion; ++version) {
    const Step& step = kSteps[version - kOldestSchema];
    LULL_RETURN_IF_ERROR(db.Script(step.script));
    if (step.then == nullptr) continue;
    for (const Packing& packing : step.then()) {
      LULL_RETURN_IF_ERROR(db.Script(ScriptOf(packing).c_str()));
    }
  }
  return db.Script(
      absl::StrCat("PRAGMA user_version=", kSchemaVersion, ";COMMIT").c_str());
}

}  // namespace

absl::Status Convert(Database& db, int64_t version) {
  LULL_RETURN_IF_ERROR(db.AddFunction("pack", Pack));
  LULL_RETURN_IF_ERROR(db.Script("BEGIN IMMEDIATE"));
  absl::Status status = RunSteps(db, version);
  if (!status.ok()) db.Script("ROLLBACK").IgnoreError();
  return status;
}

}  // namespace lull::storage
