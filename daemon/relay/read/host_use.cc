#include "daemon/relay/read/host_use.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/text.h"
#include "daemon/procfs/stat.h"

namespace lull::relay {
namespace {

constexpr uint64_t kPeriodNs = 5'000'000'000;
constexpr uint64_t kLongestPeriodNs = 60'000'000'000;
constexpr uint64_t kMostOfATime = 2000;  // one part of so many is spent on reading

// Devices whose packets others count, too, as far as names tell: bridges, tunnels, what
// leads to containers and virtual machines.
constexpr absl::string_view kVirtual[] = {
    "azv",   "bond",   "br-",     "cali",  "cilium", "cni",  "docker", "dummy",
    "eni",   "erspan", "flannel", "gene",  "gre",    "ifb",  "ip6",    "kube",
    "lxc",   "macv",   "ovs",     "sit",   "tap",    "team", "tun",    "veth",
    "virbr", "vlan",   "vnet",    "vxlan", "wg"};

bool IsVirtual(absl::string_view device) {
  if (absl::StrContains(device, ".")) return true;  // a VLAN
  if (absl::StartsWith(device, "br") && device.size() > 2 &&
      absl::ascii_isdigit(static_cast<unsigned char>(device[2]))) {
    return true;
  }
  return std::any_of(std::begin(kVirtual), std::end(kVirtual),
                     [&](auto prefix) { return absl::StartsWith(device, prefix); });
}

uint64_t OwnTimeNs() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

// A number times `scale`; nullopt where there is none, or too large a one.
std::optional<uint64_t> Scaled(absl::string_view text, uint64_t scale) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value > kMaxWireTotal / scale) {
    return std::nullopt;
  }
  return value * scale;
}

uint64_t Sum(uint64_t a, uint64_t b) { return std::min(a + b, kMaxWireTotal); }

// The microseconds of "some avg10=0.00 ... total=123" or the line "full ...".
std::optional<uint64_t> StalledNs(absl::string_view text, absl::string_view kind) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, kind)) continue;
    const size_t total = line.find("total=");
    if (total == absl::string_view::npos) return std::nullopt;
    return Scaled(line.substr(total + 6), 1000);
  }
  return std::nullopt;
}

}  // namespace

void HostUseReader::Resume(const v1::HostUse& earlier) {
  use_ = earlier;
  if (earlier.has_process_start()) start_ = absl::StrCat(earlier.process_start());
}

void HostUseReader::Follow(uint64_t now_ns) {
  if (now_ns < next_ns_) return;
  const uint64_t began_ns = OwnTimeNs();
  v1::HostUse use;
  std::map<std::string, Traffic> devices = devices_;
  if (ReadProcess(&use)) {
    ReadNetwork(&devices, &use);
    ReadPressure(&use);
    if (IsTheSame()) {
      use_.MergeFrom(use);
      devices_ = std::move(devices);
    }
  }
  const uint64_t took_ns = OwnTimeNs() - began_ns;
  next_ns_ = now_ns + std::clamp(took_ns * kMostOfATime, kPeriodNs, kLongestPeriodNs);
}

bool HostUseReader::IsTheSame() const {
  return StatField(procfs_.Read(pid_, "stat").text, kStatStart) == start_;
}

void HostUseReader::SetEnded() {
  if (use_.has_resident_bytes()) use_.set_resident_bytes(0);
}

bool HostUseReader::ReadProcess(v1::HostUse* use) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  const auto stat = procfs_.Read(pid_, "stat");
  const absl::string_view start = StatField(stat.text, kStatStart);
  if (!stat.ok() || start.empty()) return false;
  if (start_.empty()) start_ = std::string(start);
  if (start != start_) return false;
  if (auto ticks = Scaled(start, 1)) use->set_process_start(*ticks);
  const auto tick_ns = kNsPerSecond / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (auto ns = Scaled(StatField(stat.text, kStatUserTime), tick_ns)) {
    use->set_user_ns(*ns);
  }
  if (auto ns = Scaled(StatField(stat.text, kStatSystemTime), tick_ns)) {
    use->set_system_ns(*ns);
  }
  if (auto faults = Scaled(StatField(stat.text, kStatMajorFaults), 1)) {
    use->set_major_faults(*faults);
  }
  if (auto bytes = Scaled(StatField(stat.text, kStatResident), page)) {
    use->set_resident_bytes(*bytes);
  }
  const auto io = procfs_.Read(pid_, "io");
  if (auto bytes = Scaled(StatusField(io.text, "read_bytes"), 1)) {
    use->set_read_bytes(*bytes);
  }
  if (auto bytes = Scaled(StatusField(io.text, "write_bytes"), 1)) {
    use->set_written_bytes(*bytes);
  }
  return true;
}

void HostUseReader::ReadNetwork(std::map<std::string, Traffic>* devices,
                                v1::HostUse* use) const {
  const auto text = procfs_.Read(pid_, "net/dev").text;
  // The last line may be cut.
  const absl::string_view whole =
      absl::string_view(text).substr(0, text.rfind('\n') + 1);
  std::map<std::string, Traffic> real, others;
  for (absl::string_view line : absl::StrSplit(whole, '\n')) {
    // "  eth0: RECEIVED, seven more columns, SENT"
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    const absl::string_view name = absl::StripAsciiWhitespace(line.substr(0, colon));
    const std::vector<absl::string_view> columns =
        absl::StrSplit(line.substr(colon + 1), ' ', absl::SkipEmpty());
    if (name == "lo" || columns.size() < 9) continue;
    const auto received = Scaled(columns[0], 1), sent = Scaled(columns[8], 1);
    if (!received || !sent) continue;
    (IsVirtual(name) ? others : real)[std::string(name)] = {*received, *sent};
  }
  // A container without rights may have a tunnel for its only device.
  if (real.empty()) real = std::move(others);
  if (real.empty()) return;
  Traffic sum, more;
  for (const auto& [name, now] : real) {
    const Traffic known = devices_.contains(name) ? devices_.at(name) : Traffic();
    sum = {Sum(sum.received, now.received), Sum(sum.sent, now.sent)};
    more.received =
        Sum(more.received, now.received - std::min(now.received, known.received));
    more.sent = Sum(more.sent, now.sent - std::min(now.sent, known.sent));
    (*devices)[name] = now;
  }
  if (devices_.empty()) {  // the first time of this worker
    use->set_received_bytes(std::max(use_.received_bytes(), sum.received));
    use->set_sent_bytes(std::max(use_.sent_bytes(), sum.sent));
  } else {
    use->set_received_bytes(Sum(use_.received_bytes(), more.received));
    use->set_sent_bytes(Sum(use_.sent_bytes(), more.sent));
  }
}

// That of its cgroup where there is such a file: in a container that is what counts.
void HostUseReader::FindPressure() {
  const auto groups = procfs_.Read(pid_, "cgroup");
  if (!groups.ok()) return;
  pressure_ = {procfs_.Path("pressure/"), ""};
  for (absl::string_view line : absl::StrSplit(groups.text, '\n')) {
    if (!absl::ConsumePrefix(&line, "0::/") || absl::StrContains(line, "..")) continue;
    const std::string folder =
        absl::StrCat(cgroups_, "/", line, line.empty() ? "" : "/");
    if (Procfs("").Read(absl::StrCat(folder, "cpu.pressure")).ok()) {
      pressure_ = {folder, ".pressure"};
    }
  }
}

void HostUseReader::ReadPressure(v1::HostUse* use) {
  if (!pressure_) FindPressure();
  if (!pressure_) return;
  auto read = [this](const char* resource) {
    return Procfs("")
        .Read(absl::StrCat(pressure_->first, resource, pressure_->second))
        .text;
  };
  const std::string cpu = read("cpu"), memory = read("memory"), io = read("io");
  if (auto ns = StalledNs(cpu, "some "))
    use->set_cpu_some_ns(std::max(*ns, use_.cpu_some_ns()));
  if (auto ns = StalledNs(memory, "some "))
    use->set_memory_some_ns(std::max(*ns, use_.memory_some_ns()));
  if (auto ns = StalledNs(memory, "full "))
    use->set_memory_full_ns(std::max(*ns, use_.memory_full_ns()));
  if (auto ns = StalledNs(io, "some "))
    use->set_io_some_ns(std::max(*ns, use_.io_some_ns()));
  if (auto ns = StalledNs(io, "full "))
    use->set_io_full_ns(std::max(*ns, use_.io_full_ns()));
}

}  // namespace lull::relay
