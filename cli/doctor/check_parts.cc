#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/base/environment.h"
#include "cli/client/collector_address.h"
#include "cli/client/collector_client.h"
#include "cli/client/install.h"
#include "cli/client/places.h"
#include "cli/client/private_collector.h"
#include "cli/doctor/check.h"
#include "cli/doctor/command.h"
#include "cli/doctor/loader.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {
namespace {

constexpr absl::Duration kSmallCommand = absl::Seconds(10);

// Programs that print what is mapped into them. `cat` is a static program in some
// images (busybox), into which nothing is preloaded; the Python that trains there is
// not.
std::vector<std::vector<std::string>> PrintersOfMaps() {
  std::vector<std::vector<std::string>> printers = {{"cat", "/proc/self/maps"}};
  for (const std::string& python : FindPrograms({"python3", "python"})) {
    printers.push_back({python, "-ISc", "print(open('/proc/self/maps').read())"});
  }
  return printers;
}

// A loader that ignores LD_PRELOAD (static or setuid programs, another libc) maps
// nothing of ours.
Check Preload() {
  auto library = FindPreloadLibrary();
  if (!library.ok()) {
    return {"preload", Check::Status::kError, std::string(library.status().message()),
            "install lull as a whole folder"};
  }
  bool tried = false;
  for (const std::vector<std::string>& printer : PrintersOfMaps()) {
    auto maps = RunCommand(printer, EnvironmentWithShim(*library, ""), kSmallCommand);
    if (!maps.ok()) {
      return {"preload", Check::Status::kError, std::string(maps.status().message()),
              absl::StrCat("see why `", absl::StrJoin(printer, " "),
                           "` hangs with the library preloaded")};
    }
    if (maps->exit_status == 0 && absl::StrContains(maps->output, *library)) {
      return {"preload", Check::Status::kOk, absl::StrCat(*library, " is loaded")};
    }
    tried = tried || maps->exit_status != 127;
  }
  if (!tried) {
    return {"preload", Check::Status::kWarning,
            "not tried: neither `cat` nor a Python here to load the library"};
  }
  return {"preload", Check::Status::kError,
          absl::StrCat(*library, " is not loaded into programs"),
          "check that the library was built for this machine's glibc, and that nothing "
          "clears LD_PRELOAD"};
}

// Listens where a relay would, and takes a connection for a hello. It is closed
// without an answer, which leaves the process inert.
Check Hello() {
  auto library = FindPreloadLibrary();
  auto runtime = PrepareRuntimeDirectory();
  std::vector<std::string> pythons = FindPrograms({"python3", "python"});
  if (!library.ok() || !runtime.ok() || pythons.empty()) {
    return {"handshake", Check::Status::kWarning, "not tried: no Python or no shim"};
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string path = absl::StrCat(*runtime, "/doctor-", getpid(), ".sock");
  memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!listener ||
      bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      listen(listener.get(), 8) != 0) {
    return {"handshake", Check::Status::kError,
            absl::StrCat("cannot listen on ", path, ": ", strerror(errno)),
            "choose a runtime directory on a local disk with LULL_RUNTIME_DIR"};
  }
  bool heard = false;
  std::thread relay([&] {
    pollfd wait = {listener.get(), POLLIN, 0};
    if (poll(&wait, 1, 5000) == 1) {
      UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      heard = static_cast<bool>(peer);
    }
  });
  auto ran = RunCommand({pythons.front(), "-c", "pass"},
                        EnvironmentWithShim(*library, path), kSmallCommand);
  relay.join();
  unlink(path.c_str());
  if (heard && ran.ok() && ran->exit_status == 0) {
    return {"handshake", Check::Status::kOk,
            absl::StrCat(pythons.front(), " reports to its relay")};
  }
  return {"handshake", Check::Status::kError,
          absl::StrCat(pythons.front(), " does not report to its relay"),
          "see whether LULL_DISABLE is set, and whether a security module forbids unix "
          "sockets"};
}

// As the shim looks for it: beside itself.
Check Libunwind() {
  auto library = FindPreloadLibrary();
  const std::string place =
      library.ok()
          ? std::filesystem::path(*library).replace_filename("libunwind.so.8").string()
          : "libunwind.so.8";
  if (library.ok() && LoaderFinds(place)) {
    return {"libunwind", Check::Status::kOk, absl::StrCat(place, " can be loaded")};
  }
  return {"libunwind", Check::Status::kWarning,
          absl::StrCat(place, " cannot be loaded: reports have no native stacks"),
          "install lull from its wheel or its package, which bring it (the "
          "distribution's does not serve), or make it with tools/libunwind/build"};
}

absl::StatusOr<v1::StatusReply> Ask(const absl::StatusOr<ChosenCollector>& address) {
  LULL_RETURN_IF_ERROR(address.status());
  LULL_ASSIGN_OR_RETURN(auto client,
                        CollectorClient::Create(*address, absl::Seconds(5)));
  return client->GetStatus();
}

Check Collector() {
  auto runtime = PrepareRuntimeDirectory();
  if (!runtime.ok()) {
    return {"collector", Check::Status::kError, "not tried: no runtime directory"};
  }
  absl::Status started = EnsurePrivateCollector(*runtime);
  auto address = ResolveCollector(
      {absl::StrCat("unix:", CollectorSocketPath(*runtime)), "", ""}, *runtime);
  auto status = Ask(started.ok() ? address : started);
  if (!status.ok()) {
    return {"collector", Check::Status::kError, std::string(status.status().message()),
            absl::StrCat("look at ", *runtime, "/collector.log")};
  }
  return {"collector", Check::Status::kOk,
          absl::StrCat("lulld ", status->version(), " answers, pid ", status->pid(),
                       ", store ", status->database())};
}

// The one that jobs of this environment report to, if that is not the private one.
std::vector<Check> NamedCollector() {
  const std::string named = Variable("LULL_COLLECTOR");
  if (named.empty()) return {};
  auto address = ResolveCollector({}, "");
  auto status = Ask(address);
  absl::Status may_write =
      address.ok() ? ForWriting(*address).status() : absl::OkStatus();
  if (!status.ok() || !may_write.ok()) {
    return {{"$LULL_COLLECTOR", Check::Status::kError,
             std::string((status.ok() ? may_write : status.status()).message()),
             "unset LULL_COLLECTOR to use the private collector"}};
  }
  return {{"$LULL_COLLECTOR", Check::Status::kOk,
           absl::StrCat("lulld ", status->version(), " answers at ", named)}};
}

}  // namespace

std::vector<Check> CheckParts() {
  std::vector<Check> checks = {Preload(), Hello(), Libunwind(), Collector()};
  for (Check& check : NamedCollector()) checks.push_back(std::move(check));
  return checks;
}

}  // namespace lull
