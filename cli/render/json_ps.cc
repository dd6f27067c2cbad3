#include <utility>

#include "cli/render/json_parts.h"
#include "cli/render/ps.h"
#include "cli/render/ps_words.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

using attach::Examination;
using attach::Namespace;
using attach::Obstacle;
using attach::Process;
using attach::SeccompMode;

Json NamespaceJson(Namespace relation) {
  switch (relation) {
    case Namespace::kUnknown:
      return nullptr;
    case Namespace::kOurs:
      return "ours";
    case Namespace::kOther:
      return "other";
    case Namespace::kBelowOurs:
      return "below_ours";
  }
  return nullptr;
}

const char* SeccompId(SeccompMode mode) {
  switch (mode) {
    case SeccompMode::kOff:
      return "off";
    case SeccompMode::kStrict:
      return "strict";
    case SeccompMode::kFilter:
      return "filter";
  }
  return "off";
}

Json LibcJson(const Process& process) {
  if (!process.files.glibc.empty()) return "glibc";
  if (process.files.musl) return "musl";
  bool is_static = process.program.known && process.program.loader.empty();
  return If(is_static, "static");
}

Json ShimJson(const Process& process) {
  if (process.files.shim.empty()) return nullptr;
  if (process.preloaded) return "preloaded";
  return process.files.shim_records ? "attached" : "asleep";
}

Json ObstaclesJson(const std::vector<Obstacle>& list) {
  Json json = Json::array();
  for (const Obstacle& one : list) {
    json.push_back({{"id", one.id}, {"what", one.what}, {"advice", one.advice}});
  }
  return json;
}

Json ExaminationJson(const Examination& seen) {
  const Process& process = seen.process;
  Json json = {{"pid", process.pid}};
  if (process.exists) {
    json["parent_pid"] = process.parent;
    json["user"] = process.user;
    json["uid"] = process.users.effective;
    json["name"] = process.name;
    json["command"] = CommandOf(process);
    json["state"] = std::string(1, process.state);
    json["started"] = FormatUtc(process.start_realtime_ns);
    json["start_ticks"] = process.start_ticks;
    json["threads"] = process.threads;
    json["tracer_pid"] = If(process.tracer != 0, process.tracer);
    json["role"] = RoleId(seen.role);
    json["python"] = process.is_python;
    json["python_version"] = TextOrNull(process.files.python_version);
    json["rank"] = RankJson(process.rank.rank);
    json["local_rank"] = RankJson(process.rank.local_rank);
    json["world_size"] = RankJson(process.rank.world_size);
    json["cuda_loaded"] = process.uses_cuda();
    json["cuda_called"] = process.files.cuda_driver;
    json["gpus"] = process.gpu_devices;
    json["executable"] = TextOrNull(process.executable);
    json["bits"] = If(process.program.known, process.program.bits);
    json["machine"] =
        If(process.program.known, attach::MachineName(process.program.machine));
    json["libc"] = LibcJson(process);
    json["libc_version"] = TextOrNull(process.glibc_version);
    json["namespaces"] = {{"pid", NamespaceJson(process.pid_namespace)},
                          {"mount", NamespaceJson(process.mount_namespace)},
                          {"user", NamespaceJson(process.user_namespace)},
                          {"network", NamespaceJson(process.network_namespace)}};
    json["seccomp"] = SeccompId(process.seccomp);
    json["no_new_privs"] = process.no_new_privs;
    json["dumpable"] = process.dumpable;
    json["shadow_stack"] = process.shadow_stack;
    json["shim"] = ShimJson(process);
  }
  json["can_attach"] = seen.CanBeAttached();
  json["obstacles"] = ObstaclesJson(seen.obstacles);
  json["notes"] = ObstaclesJson(seen.notes);
  return json;
}

}  // namespace

Json PsJson(const std::vector<Examination>& processes) {
  Json rows = Json::array();
  for (const Examination& seen : processes) rows.push_back(ExaminationJson(seen));
  return {{"processes", std::move(rows)}};
}

Json ProcessJson(const Examination& examination, const std::vector<pid_t>& workers) {
  return {{"process", ExaminationJson(examination)}, {"workers", workers}};
}

}  // namespace lull
