#include "daemon/relay/symbols/native_symbolizer.h"

#include <fcntl.h>
#include <stdio.h>

#include <deque>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/clock.h"
#include "daemon/base/text.h"
#include "daemon/procfs/address_space.h"
#include "daemon/procfs/procfs.h"

namespace lull::relay {
namespace {

constexpr size_t kMaxKnownAddresses = 64 * 1024;
constexpr size_t kMaxFunctionName = 512;  // of C++ templates, the rest says little
// A stack waits so long for the mappings. A full machine takes some tens of
// milliseconds to read them.
constexpr uint64_t kPatienceNs = 1'000'000'000;
// Reading a process's mappings holds up its page faults: not for every malloc().
constexpr uint64_t kGrownPages = 1024;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string BaseName(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// None: the process is gone, a zombie, or another program. Then the last snapshot
// stands.
Maps ReadMaps(pid_t pid, const UniqueFd* memory, const std::string& snapshot_path) {
  Maps maps = Maps::Parse(Procfs().Read(pid, "maps", SIZE_MAX).text);
  // Asked after the reading: functions of the next program lie at addresses of the one
  // that was.
  if (maps.empty() || (memory != nullptr && IsOfNobody(*memory))) return Maps();
  std::string fresh = snapshot_path + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << maps.ToText();
  file.close();
  if (file) rename(fresh.c_str(), snapshot_path.c_str());
  return maps;
}

std::vector<lull::v1::Frame> FramesAt(const ModuleCache::Place& place) {
  bool known = place.outcome == ModuleCache::Outcome::kKnown;
  std::vector<NativeFrame> frames =
      known ? place.answer.frames : std::vector<NativeFrame>();
  if (frames.empty()) frames.emplace_back();
  const std::string& path = place.mapping->path;
  std::vector<lull::v1::Frame> result;
  for (const NativeFrame& frame : frames) {
    lull::v1::Frame& out = result.emplace_back();
    out.set_function(
        frame.function.empty()
            ? CleanText(absl::StrFormat("%s+0x%x", BaseName(path),
                                        known ? place.answer.address : place.offset))
            : CleanText(frame.function, kMaxFunctionName));
    out.set_file(CleanText(frame.file));
    out.set_line(frame.line);
    out.set_module(CleanText(path));
  }
  return result;
}

MappedBy WithItsRoot(pid_t pid) {
  MappedBy process = MappedBy::Process(pid);
  process.root = std::make_shared<const UniqueFd>(open(
      absl::StrCat("/proc/", pid, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return process;
}

}  // namespace

NativeSymbolizer::NativeSymbolizer(pid_t pid, std::string snapshot_path,
                                   ModuleCache* modules,
                                   std::shared_ptr<const UniqueFd> memory,
                                   std::function<Maps()> read)
    : process_(WithItsRoot(pid)),
      reader_(std::make_shared<MapsReader>(
          read != nullptr
              ? std::move(read)
              : [pid, snapshot_path,
                 memory = std::move(
                     memory)] { return ReadMaps(pid, memory.get(), snapshot_path); })),
      modules_(modules),
      maps_(std::make_shared<const Maps>(Maps::Parse(ReadText(snapshot_path)))) {}

bool NativeSymbolizer::TakeWhatWasRead(absl::Duration patience) {
  std::shared_ptr<const Maps> maps = reader_->Take(patience);
  if (maps == nullptr) return false;
  maps_ = std::move(maps);
  for (const auto& [address, told] : unsure_) {
    // Stacks were defined without its name, and are not defined again.
    const Mapping* mapping = told ? maps_->Find(address - 1) : nullptr;
    if (mapping != nullptr && absl::StartsWith(mapping->path, "/")) {
      unread_.insert(mapping->path);
    }
    known_.erase(address);
  }
  unsure_.clear();
  return true;
}

void NativeSymbolizer::Wait() {
  const uint64_t waited_ns = MonotonicNs() - reader_->began_ns();
  TakeWhatWasRead(
      absl::Nanoseconds(waited_ns < kPatienceNs ? kPatienceNs - waited_ns : 0));
}

void NativeSymbolizer::GoOnPreparing() {
  if (!prepare_ || reader_->reading()) return;
  TakeWhatWasRead(absl::ZeroDuration());
  prepare_ = false;
  modules_->Prepare(process_, *maps_);
}

void NativeSymbolizer::PrepareNow() {
  Prepare();
  Wait();
  GoOnPreparing();
}

void NativeSymbolizer::Prepare() {
  GoOnPreparing();
  std::istringstream sizes(Procfs().Read(process_.pid, "statm").text);
  uint64_t pages = 0;
  if (!(sizes >> pages) || pages < prepared_pages_ + kGrownPages) return;
  prepared_pages_ = pages;
  Refresh();
  prepare_ = true;
}

const Mapping* NativeSymbolizer::FindMapping(uint64_t address) {
  const Mapping* mapping = maps_->Find(address);
  if (mapping != nullptr) return mapping;
  reader_->StartFor({&address, 1});
  Wait();
  return maps_->Find(address);
}

void NativeSymbolizer::Expect(const uint64_t* return_addresses, size_t count) {
  TakeWhatWasRead(absl::ZeroDuration());
  if (known_.size() > kMaxKnownAddresses) known_.clear();
  std::vector<ModuleCache::Place> places;
  std::vector<std::vector<lull::v1::Frame>*> results;
  // A mapping that was found is gone when the mappings are read again.
  std::deque<Mapping> mappings;
  const uint64_t asked_ns = MonotonicNs();
  for (size_t i = 0; i < count; ++i) {
    auto unsure = unsure_.find(return_addresses[i]);
    const bool settled = unsure == unsure_.end() || unsure->second;
    if (settled && known_.contains(return_addresses[i])) continue;
    // The call lies before the address that it returns to.
    uint64_t address = return_addresses[i] - 1;
    const Mapping* mapping = FindMapping(address);
    // Not before: what is read then takes away all that was unsure.
    std::vector<lull::v1::Frame>& frames = known_[return_addresses[i]];
    frames.clear();
    unsure_.erase(return_addresses[i]);
    if (mapping == nullptr || mapping->path.empty()) {
      frames.emplace_back().set_function(absl::StrFormat("0x%x", address));
      const bool reading = reader_->reading();
      // Of a library that was loaded after the mappings were read nothing is known yet.
      if (mapping == nullptr && (reading || reader_->began_ns() < asked_ns)) {
        unsure_[return_addresses[i]] = false;
      }
      if (maps_->empty() && !reading) {
        unread_.insert("");  // the process was gone before its mappings were read
      }
      continue;
    }
    if (mappings.empty() || mappings.back().start != mapping->start) {
      mappings.push_back(*mapping);
    }
    ModuleCache::Place& place = places.emplace_back();
    place.mapping = &mappings.back();
    place.offset = address - mapping->start + mapping->offset;
    results.push_back(&frames);  // stays valid when others are added
  }
  if (places.empty()) return;
  modules_->Resolve(process_, &places);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].outcome == ModuleCache::Outcome::kUnread) {
      unread_.insert(places[i].mapping->path);
    }
    *results[i] = FramesAt(places[i]);
  }
}

void NativeSymbolizer::Resolve(
    uint64_t return_address,
    google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames) {
  Expect(&return_address, 1);
  auto unsure = unsure_.find(return_address);
  if (unsure != unsure_.end()) unsure->second = true;
  for (const lull::v1::Frame& frame : known_[return_address]) *frames->Add() = frame;
}

}  // namespace lull::relay
