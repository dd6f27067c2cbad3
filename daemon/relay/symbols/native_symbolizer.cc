#include "daemon/relay/symbols/native_symbolizer.h"

#include <stdio.h>

#include <deque>
#include <fstream>
#include <sstream>

#include "absl/strings/str_format.h"
#include "daemon/base/clock.h"
#include "daemon/base/text.h"
#include "daemon/procfs/address_space.h"
#include "daemon/procfs/procfs.h"

namespace lull::relay {
namespace {

constexpr size_t kMaxKnownAddresses = 64 * 1024;
constexpr size_t kMaxFunctionName = 512;  // of C++ templates, the rest says little
// An address outside of all mappings may come from a library loaded just now, or
// be nonsense: look again, but not for each piece of nonsense.
constexpr uint64_t kRefreshPeriodNs = 100'000'000;
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

}  // namespace

NativeSymbolizer::NativeSymbolizer(pid_t pid, std::string snapshot_path,
                                   ModuleCache* modules,
                                   std::shared_ptr<const UniqueFd> memory)
    : process_(MappedBy::Process(pid)),
      memory_(std::move(memory)),
      snapshot_path_(std::move(snapshot_path)),
      modules_(modules) {
  maps_ = Maps::Parse(ReadText(snapshot_path_));
}

void NativeSymbolizer::Refresh() {
  refreshed_ns_ = MonotonicNs();
  Maps now = Maps::Parse(Procfs().Read(process_.pid, "maps", SIZE_MAX).text);
  if (now.empty()) return;  // gone, or a zombie: the last snapshot stands
  // Asked after the reading: at the addresses of the program that was lie functions of
  // the next one.
  if (memory_ != nullptr && IsOfNobody(*memory_)) return;
  maps_ = std::move(now);
  std::string fresh = snapshot_path_ + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << maps_.ToText();
  file.close();
  if (file) rename(fresh.c_str(), snapshot_path_.c_str());
}

void NativeSymbolizer::Prepare() {
  std::istringstream sizes(Procfs().Read(process_.pid, "statm").text);
  uint64_t pages = 0;
  if (!(sizes >> pages) || pages < prepared_pages_ + kGrownPages) return;
  prepared_pages_ = pages;
  Refresh();
  modules_->Prepare(process_, maps_);
}

const Mapping* NativeSymbolizer::FindMapping(uint64_t address) {
  const Mapping* mapping = maps_.Find(address);
  if (mapping != nullptr || MonotonicNs() - refreshed_ns_ < kRefreshPeriodNs) {
    return mapping;
  }
  Refresh();
  return maps_.Find(address);
}

void NativeSymbolizer::Expect(const uint64_t* return_addresses, size_t count) {
  if (known_.size() > kMaxKnownAddresses) known_.clear();
  std::vector<ModuleCache::Place> places;
  std::vector<std::vector<lull::v1::Frame>*> results;
  // A mapping that was found is gone when the mappings are read again.
  std::deque<Mapping> mappings;
  for (size_t i = 0; i < count; ++i) {
    auto [entry, added] = known_.try_emplace(return_addresses[i]);
    if (!added) continue;
    // The call lies before the address that it returns to.
    uint64_t address = return_addresses[i] - 1;
    const Mapping* mapping = FindMapping(address);
    if (mapping == nullptr || mapping->path.empty()) {
      entry->second.emplace_back().set_function(absl::StrFormat("0x%x", address));
      continue;
    }
    if (mappings.empty() || mappings.back().start != mapping->start) {
      mappings.push_back(*mapping);
    }
    ModuleCache::Place& place = places.emplace_back();
    place.mapping = &mappings.back();
    place.offset = address - mapping->start + mapping->offset;
    results.push_back(&entry->second);  // stays valid when others are added
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
  for (const lull::v1::Frame& frame : known_[return_address]) *frames->Add() = frame;
}

}  // namespace lull::relay
