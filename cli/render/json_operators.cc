#include "cli/render/json.h"
#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {

// How often an operator was called cannot be told from what it launched: null. Bytes
// are 0 only where the operators of all allocations are known.
Json OperatorsJson(const v1::ReportReply& reply) {
  const v1::Operators& operators = reply.operators();
  const bool truth = HasGpuTruth(reply.gpu());
  const bool complete = operators.known_bytes() == operators.allocated_bytes();
  auto percent = [&](uint64_t ns) {
    return If(truth, Percent(D(ns), D(operators.gpu_ns())));
  };
  auto adapt = [&](const v1::OperatorRow& row, Json& json) {
    Insert(json, "pass", "calls", nullptr);
    Insert(json, "own_gpu_ms", "gpu_percent", percent(row.gpu_ns()));
    Insert(json, "gpu_percent", "own_gpu_percent", percent(row.own_gpu_ns()));
    if (!truth) SetNull(json, {"gpu_ms", "own_gpu_ms"});
    if (row.allocations() == 0 && !complete) {
      SetNull(json, {"allocations", "allocated_bytes"});
    }
    if (row.own_allocations() == 0 && !complete) SetNull(json, {"own_allocated_bytes"});
    json.erase("own_allocations");
  };
  return AnswerJson(reply, {{"gpu", GpuJson(reply.gpu())},
                            {"ops", RowsJson(operators.operators(), adapt)},
                            {"total_ops", operators.rows()},
                            {"total_gpu_ms", MsIf(truth, operators.gpu_ns())},
                            {"total_launches", operators.launches()},
                            {"unknown_gpu_ms", MsIf(truth, operators.unknown_gpu_ns())},
                            {"unknown_launches", operators.unknown_launches()},
                            {"allocated_bytes", operators.allocated_bytes()},
                            {"known_bytes", operators.known_bytes()}});
}

// What the above prints.
namespace schema {

Json Operators() {
  Row row = RowOf<v1::OperatorRow>();
  row.Insert("pass", "calls", Null())
      .Insert("own_gpu_ms", "gpu_percent", AmountOrNull())
      .Insert("gpu_percent", "own_gpu_percent", AmountOrNull())
      .OrNull({"gpu_ms", "own_gpu_ms", "allocations", "allocated_bytes"})
      .OrNull({"own_allocated_bytes"})
      .Erase("own_allocations");
  return Answer({{"gpu", Ref("gpu")},
                 {"ops", ListOf(row.Done())},
                 {"total_ops", Count()},
                 {"total_gpu_ms", AmountOrNull()},
                 {"total_launches", Count()},
                 {"unknown_gpu_ms", AmountOrNull()},
                 {"unknown_launches", Count()},
                 {"allocated_bytes", Count()},
                 {"known_bytes", Count()}});
}

}  // namespace schema
}  // namespace lull
