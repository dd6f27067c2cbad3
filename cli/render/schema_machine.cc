// What `lull ps`, `lull arm`, `lull tag`, `lull pin` and `lull doctor` print.
#include <utility>

#include "cli/render/schema.h"
#include "cli/render/schema_parts.h"

namespace lull::schema {
namespace {

Json Namespace() { return OrNull(OneOf({"ours", "other", "below_ours"})); }

Json Obstacles() {
  return ListOf(Object({{"id", Text()}, {"what", Text()}, {"advice", Text()}}));
}

// A process that is gone has no more than its pid and what is in the way.
Json Process() {
  Json known = {{"parent_pid", Whole()},
                {"user", Text()},
                {"uid", Count()},
                {"name", Text()},
                {"command", Text()},
                {"state", Text()},
                {"started", Text()},
                {"start_ticks", Count()},
                {"threads", Count()},
                {"tracer_pid", OrNull(Count())},
                {"role", OneOf({"ordinary", "launcher", "helper", "fork_child"})},
                {"python", Flag()},
                {"python_version", TextOrNull()},
                {"rank", OrNull(Count())},
                {"local_rank", OrNull(Count())},
                {"world_size", OrNull(Count())},
                {"cuda_loaded", Flag()},
                {"cuda_called", Flag()},
                {"gpus", ListOf(Count())},
                {"executable", TextOrNull()},
                {"bits", OrNull(Count())},
                {"machine", TextOrNull()},
                {"libc", OrNull(OneOf({"glibc", "musl", "static"}))},
                {"libc_version", TextOrNull()},
                {"namespaces", Object({{"pid", Namespace()},
                                       {"mount", Namespace()},
                                       {"user", Namespace()},
                                       {"network", Namespace()}})},
                {"seccomp", OneOf({"off", "strict", "filter"})},
                {"no_new_privs", Flag()},
                {"dumpable", Flag()},
                {"shadow_stack", Flag()},
                {"shim", OrNull(OneOf({"preloaded", "attached", "asleep"}))}};
  const Json verdict = {
      {"can_attach", Flag()}, {"obstacles", Obstacles()}, {"notes", Obstacles()}};
  Json gone = {{"pid", Whole()}};
  gone.update(verdict);
  Json seen = {{"pid", Whole()}};
  seen.update(known);
  seen.update(verdict);
  return {{"anyOf", Json::array({Object(std::move(seen)), Object(std::move(gone))})}};
}

}  // namespace

Json Ps() {
  Json one = Object({{"process", Process()}, {"workers", ListOf(Count())}});
  return {{"anyOf",
           Json::array({Object({{"processes", ListOf(Process())}}), std::move(one)})}};
}

Json Marks() {
  return Object({{"jobs", ListOf(Ref("job"))},
                 {"database_bytes", Count()},
                 {"max_database_bytes", Count()}});
}

Json Arm() {
  return Object({{"job", Ref("job")},
                 {"armed", Flag()},
                 {"processes", Count()},
                 {"for_ms", AmountOrNull()}});
}

Json Doctor() {
  return Object(
      {{"checks", ListOf(Object({{"name", Text()},
                                 {"status", OneOf({"ok", "warning", "error"})},
                                 {"detail", Text()},
                                 {"advice", Text()}}))}});
}

}  // namespace lull::schema
