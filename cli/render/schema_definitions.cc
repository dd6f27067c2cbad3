#include "cli/render/schema_definitions.h"

#include <utility>
#include <vector>

#include "cli/render/schema_parts.h"
#include "daemon/words/cause_words.h"
#include "query.pb.h"

namespace lull::schema {
namespace {

Json Frame(bool native) {
  Json properties = {{"function", Text()}, {"file", Text()}, {"line", Whole()}};
  if (native) properties["module"] = Text();
  return Object(std::move(properties));
}

Json Site() {
  return Object({{"file", Text()},
                 {"line", Whole()},
                 {"function", Text()},
                 {"node", TextOrNull()},
                 {"backward_of", OrNull(Ref("site"))},
                 {"forward_site", OrNull(Ref("site"))}},
                {"node", "backward_of", "forward_site"});
}

Json Job() {
  return Object({{"id", Text()},
                 {"name", Text()},
                 {"command", Text()},
                 {"host", Text()},
                 {"started_at", TextOrNull()},
                 {"duration_ms", Amount()},
                 {"exit_status", OrNull(Whole())},
                 {"ended", Flag()},
                 {"attached", Flag()},
                 {"events", Count()},
                 {"processes", Count()},
                 {"working_processes", Count()},
                 {"armed", OrNull(Flag())},
                 {"recorded", ListOfRows<v1::Job::Stretch>()},
                 {"recorded_ms", Amount()},
                 {"steps_sampled", Flag()},
                 {"since_step_ms", AmountOrNull()},
                 {"step_ms", AmountOrNull()},
                 {"end_seen", Flag()},
                 {"complete_until_ms", Amount()},
                 {"batches_set_aside", Count()},
                 {"unreachable_ms", Amount()},
                 {"tags", ListOf(Text())},
                 {"pinned", Flag()},
                 {"imported", Imported()},
                 {"parts", ListOfRows<v1::Job::Part>()}},
                {"imported", "parts"});
}

Json Gpu() {
  return RowOf<v1::Gpu>()
      .OrNull({"busy_ms", "kernel_ms", "idle_ms", "unknown_ms"})
      .OrNull({"schedule", "verdict", "missing"})
      .Insert("devices", "windows", Count())
      .Insert("explained_ms", "utilization_percent", AmountOrNull())
      .Insert("explained_ms", "explained_percent", AmountOrNull())
      .Erase("explained_ms")
      .Set("spans", ListOfRows<v1::TracingSpan>())
      .Done();
}

Json Overhead() {
  const Json estimate = OrNull(RowOf<v1::Estimate>().Done());
  Json cost = RowOf<v1::StepCost>()
                  .OrNull({"sampled_from_step"})
                  .Set("traced_longer", estimate)
                  .Set("paid", estimate)
                  .Set("between_longer", estimate)
                  .Set("recorded_longer", estimate)
                  .Set("recording_paid", estimate)
                  .Done();
  return RowOf<v1::Overhead>()
      .OrNull({"self_ms", "percent", "relay_cpu_ms", "budget_percent"})
      .Set("step_cost", OrNull(std::move(cost)))
      .Done();
}

}  // namespace

Json Definition(const std::string& name) {
  if (name == "frame") return Frame(/*native=*/false);
  if (name == "native_frame") return Frame(/*native=*/true);
  if (name == "site") return Site();
  if (name == "job") return Job();
  if (name == "gpu") return Gpu();
  if (name == "losses") return RowOf<v1::Losses>().Done();
  return Overhead();
}

Json Causes() {
  const auto& words = *v1::GapCause_descriptor();
  std::vector<std::string> keys;
  for (int i = 0; i < words.value_count(); ++i) {
    keys.push_back(CauseKey(static_cast<v1::GapCause>(words.value(i)->number())));
  }
  return OneOf(std::move(keys));
}

Json Roles() { return OneOf(KeysOf(*v1::HostSampleRole_descriptor(), "other")); }

Json Phases() { return OneOf({"all", "setup", "steady"}); }

Json Imported() {
  return Object({{"format", Text()},
                 {"files", ListOf(Text())},
                 {"files_in_all", Count()},
                 {"events", Count()},
                 {"ignored", MapOf(Count())},
                 {"found", MapOf(Count())},
                 {"not_applied", ListOf(Text())},
                 {"line_is_function_start", Flag()},
                 {"resolution_ns", Count()},
                 {"segments", ListOfRows<v1::SegmentUse>()}});
}

Json Answer(Json body) {
  Json properties = {{"job", Ref("job")}};
  properties.update(body);
  properties.update({{"phase", Phases()},
                     {"setup_ms", AmountOrNull()},
                     {"losses", Ref("losses")},
                     {"overhead", Ref("overhead")}});
  return Object(std::move(properties));
}

}  // namespace lull::schema
