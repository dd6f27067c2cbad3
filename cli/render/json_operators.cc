#include "cli/render/gpu_words.h"
#include "cli/render/json.h"
#include "cli/render/json_parts.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {

// How often an operator was called cannot be told from what it launched: null. Bytes
// are 0 only where the operators of all allocations are known.
Json OperatorsJson(const v1::ReportReply& reply) {
  const v1::Operators& operators = reply.operators();
  const bool truth = HasGpuTruth(reply.gpu());
  const bool complete = operators.known_bytes() == operators.allocated_bytes();
  auto bytes = [complete](uint64_t allocations, uint64_t amount) {
    return allocations > 0 || complete ? Json(amount) : Json(nullptr);
  };
  auto percent = [&](uint64_t ns) {
    auto of = static_cast<double>(operators.gpu_ns());
    return truth ? Json(Percent(static_cast<double>(ns), of)) : Json(nullptr);
  };
  Json rows = Json::array();
  for (const v1::OperatorRow& row : operators.operators()) {
    rows.push_back(
        {{"name", row.name()},
         {"pass", KeyOf(row.pass())},
         {"calls", Json(nullptr)},
         {"launches", row.launches()},
         {"own_launches", row.own_launches()},
         {"gpu_ms", MsIf(truth, row.gpu_ns())},
         {"own_gpu_ms", MsIf(truth, row.own_gpu_ns())},
         {"gpu_percent", percent(row.gpu_ns())},
         {"own_gpu_percent", percent(row.own_gpu_ns())},
         {"allocations", bytes(row.allocations(), row.allocations())},
         {"allocated_bytes", bytes(row.allocations(), row.allocated_bytes())},
         {"own_allocated_bytes",
          bytes(row.own_allocations(), row.own_allocated_bytes())},
         {"site", SiteJson(row.site())},
         {"stack", StackJson(row.stack(), false)}});
  }
  return AnswerJson(reply, {{"gpu", GpuJson(reply.gpu())},
                            {"ops", std::move(rows)},
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
  Json row = Object({{"name", Text()},
                     {"pass", OneOf({"forward", "backward", "optimizer", "unknown"})},
                     {"calls", Null()},
                     {"launches", Count()},
                     {"own_launches", Count()},
                     {"gpu_ms", AmountOrNull()},
                     {"own_gpu_ms", AmountOrNull()},
                     {"gpu_percent", AmountOrNull()},
                     {"own_gpu_percent", AmountOrNull()},
                     {"allocations", OrNull(Count())},
                     {"allocated_bytes", OrNull(Count())},
                     {"own_allocated_bytes", OrNull(Count())},
                     {"site", Ref("site")},
                     {"stack", ListOf(Ref("frame"))}});
  return Answer({{"gpu", Ref("gpu")},
                 {"ops", ListOf(std::move(row))},
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
