#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "daemon/aggregate/drawn_blocks.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

using aggregate::OperatorPass;

struct Amount {
  uint64_t count = 0;
  uint64_t own_count = 0;
  uint64_t total = 0;
  uint64_t own = 0;

  void Add(uint64_t more_count, uint64_t more, bool is_own) {
    count += more_count;
    total += more;
    if (is_own) own_count += more_count;
    if (is_own) own += more;
  }
};

struct Operator {
  Amount gpu;    // ns
  Amount bytes;  // allocated; counts are of parts of a block (aggregate::kBlockParts)
  uint64_t drawn_bytes = 0;  // of them, by drawn blocks
  // The series with most of either, one with a line before one without.
  Series main;
  std::tuple<bool, uint64_t, uint64_t> weight;
};

using ByName = std::map<std::pair<std::string, OperatorPass>, Operator>;

// Tensors of a device. Those of the host are no operator's of the GPU.
bool IsDeviceTensor(const Series& series) {
  return series.type == EventType::kTorchMemory && aggregate::IsAllocation(series) &&
         !aggregate::IsBefore(series) && !aggregate::IsUndrawn(series) &&
         aggregate::DeviceOf(series) != aggregate::kNoDevice;
}

// What sums up to all that such tensors took.
bool IsExactSum(const Series& series) {
  if (aggregate::DeviceOf(series) == aggregate::kNoDevice) return false;
  if (series.type == EventType::kTotalGroup) {  // of drawn blocks, what they were
    return aggregate::AllocatorOf(series) == aggregate::Allocator::kTorchCuda ||
           aggregate::AllocatorOf(series) == aggregate::Allocator::kTorchOther;
  }
  return series.type == EventType::kTorchMemory && aggregate::IsAllocation(series) &&
         !aggregate::IsBefore(series) && !aggregate::IsDrawn(series);
}

void NoteSite(const Series& series, uint64_t ns, uint64_t bytes, Operator& row) {
  std::tuple<bool, uint64_t, uint64_t> weight = {series.line_site != 0, ns, bytes};
  if (weight <= row.weight) return;
  row.weight = weight;
  row.main = series;
}

bool IsOwn(const std::string& name, const Operators& operators) {
  return operators.has_innermost && &name == &operators.names.front();
}

void AddSubmission(const Series& series, const Cell& cell, const Operators& operators,
                   ByName& rows, v1::Operators* reply) {
  reply->set_gpu_ns(reply->gpu_ns() + cell.total_ns);
  reply->set_launches(reply->launches() + cell.count);
  if (operators.names.empty()) {
    reply->set_unknown_gpu_ns(reply->unknown_gpu_ns() + cell.total_ns);
    reply->set_unknown_launches(reply->unknown_launches() + cell.count);
  }
  for (const std::string& name : operators.names) {
    Operator& row = rows[{name, operators.pass}];
    row.gpu.Add(cell.count, cell.total_ns, IsOwn(name, operators));
    NoteSite(series, cell.total_ns, 0, row);
  }
}

void AddAllocation(const Series& series, const Cell& cell, const Operators& operators,
                   ByName& rows, v1::Operators* reply) {
  // A node is known outside of windows as well, what else allocates is not: as one
  // column the two would compare different times.
  if (!operators.has_innermost) return;
  reply->set_known_bytes(reply->known_bytes() + cell.amount);
  const bool drawn = aggregate::IsDrawn(series);
  for (const std::string& name : operators.names) {
    Operator& row = rows[{name, operators.pass}];
    row.bytes.Add(cell.count * (drawn ? 1 : aggregate::kBlockParts), cell.amount,
                  IsOwn(name, operators));
    row.drawn_bytes += drawn ? cell.amount : 0;
    NoteSite(series, 0, cell.amount, row);
  }
}

ByName Collect(View& view, v1::Operators* reply) {
  ByName rows;
  for (const ProcessSums& sums : view.processes) {
    sums.ForEach([&](const Series& series, const Cell& cell) {
      bool ran = series.type == EventType::kSubmission;
      if (cell.count == 0) return;
      if (IsExactSum(series)) {
        reply->set_allocated_bytes(reply->allocated_bytes() + cell.amount);
      }
      if (!ran && !IsDeviceTensor(series)) return;
      const Operators& operators =
          view.names->OperatorsOf(series.python_stack, series.native_stack);
      if (ran) {
        AddSubmission(series, cell, operators, rows, reply);
      } else {
        AddAllocation(series, cell, operators, rows, reply);
      }
    });
  }
  return rows;
}

void FillRow(const ByName::value_type& from, Names& names, v1::OperatorRow* row) {
  const Operator& one = from.second;
  row->set_name(from.first.first);
  row->set_pass(static_cast<v1::OperatorPass>(from.first.second));
  row->set_launches(one.gpu.count);
  row->set_own_launches(one.gpu.own_count);
  row->set_gpu_ns(one.gpu.total);
  row->set_own_gpu_ns(one.gpu.own);
  row->set_allocations(one.bytes.count / aggregate::kBlockParts);
  row->set_allocated_bytes(one.bytes.total);
  row->set_own_allocations(one.bytes.own_count / aggregate::kBlockParts);
  row->set_own_allocated_bytes(one.bytes.own);
  row->set_estimated(one.drawn_bytes != 0);
  if (row->estimated()) row->set_error_bytes(aggregate::ErrorOfDrawn(one.drawn_bytes));
  names.FillSite(one.main.line_site, row->mutable_site());
  names.FillStack(one.main.python_stack, row->mutable_stack());
}

}  // namespace

absl::Status FillOperators(View& view, v1::ReportReply* reply) {
  v1::Operators* out = reply->mutable_operators();
  const ByName rows = Collect(view, out);
  // Estimates may come to more than there was, and never to all: whose the blocks are
  // that others stand for is not known.
  const bool estimated = std::any_of(rows.begin(), rows.end(), [](const auto& row) {
    return row.second.drawn_bytes != 0;
  });
  const uint64_t most = out->allocated_bytes() - (estimated ? 1 : 0);
  out->set_known_bytes(std::min(out->known_bytes(), most));
  const bool by_memory = view.request.operator_sort() == v1::OPERATOR_SORT_MEMORY;
  auto rank = [by_memory](const Operator& row) {
    auto gpu = std::make_pair(row.gpu.own, row.gpu.total);
    auto bytes = std::make_pair(row.bytes.total, row.bytes.own);
    return by_memory ? std::make_pair(bytes, gpu) : std::make_pair(gpu, bytes);
  };
  out->set_rows(static_cast<uint32_t>(rows.size()));
  for (const auto* row : Highest(rows, view.request.top(), rank)) {
    FillRow(*row, *view.names, out->add_operators());
  }
  return absl::OkStatus();
}

}  // namespace lull::query
