// From a series of events to the words of a trace.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/aggregate/series.h"
#include "daemon/export/trace_writer.h"
#include "daemon/query/names.h"

namespace lull::exports {

class Labels {
 public:
  // Labels of one process of a job; all arguments must outlive this.
  Labels(query::Names& names, const std::vector<aggregate::Series>& series,
         const std::vector<storage::GpuStreamRow>& streams);

  const aggregate::Series& series(uint32_t id) const { return series_[id]; }
  bool has(uint32_t id) const { return id < series_.size(); }
  // Made once for each series.
  const Label& Of(uint32_t id);
  // For the call of CUDA within a hooked event, which has a number of its own.
  const Label& CallLabel(uint32_t id);
  uint32_t CallOf(uint32_t id) const {
    return static_cast<uint32_t>(series_.size()) + series_[id].api;
  }

 private:
  Label Make(const aggregate::Series& series);
  void AddCall(uint32_t api, Label* label);
  void AddHooked(const aggregate::Series& series, Label* label);
  void AddOperation(const aggregate::Series& series, Label* label);
  void AddKernel(const aggregate::Series& series, Label* label);
  void AddIdle(const aggregate::Series& series, Label* label);
  void AddWait(const aggregate::Series& series, Label* label);
  // The Python stack, else the native one as far as it has lines.
  void AddStack(const aggregate::Series& series, Label* label);
  std::string StackText(uint32_t stack);
  std::string PlaceOf(uint32_t site);

  query::Names& names_;
  const std::vector<aggregate::Series>& series_;
  std::vector<storage::GpuStreamRow> streams_;  // by id
  absl::flat_hash_map<uint32_t, Label> calls_;  // by API
  std::vector<Label> labels_;
  std::vector<bool> made_;
};

}  // namespace lull::exports
