#include "daemon/relay/native_symbolizer.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/clock.h"
#include "daemon/base/text.h"

namespace lull::relay {
namespace {

constexpr size_t kMaxKnownAddresses = 64 * 1024;
constexpr size_t kMaxFunctionName = 512;  // of C++ templates, the rest says little
// An address outside of all mappings may come from a library loaded just now, or
// be nonsense: look again, but not for each piece of nonsense.
constexpr uint64_t kRefreshPeriodNs = 100'000'000;
constexpr long kOverlayFs = 0x794c7630;  // its inode numbers differ from maps'

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool IsMappedFile(const std::string& path, uint64_t inode) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  if (info.st_ino == inode || inode == 0) return true;
  struct statfs filesystem;
  return statfs(path.c_str(), &filesystem) == 0 && filesystem.f_type == kOverlayFs;
}

std::string BaseName(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::shared_ptr<ElfModule> ModuleCache::Get(pid_t pid, const Mapping& mapping) {
  auto key = std::make_pair(mapping.inode, mapping.path);
  auto known = modules_.find(key);
  if (known != modules_.end()) return known->second;
  std::shared_ptr<ElfModule> module;
  if (absl::StartsWith(mapping.path, "/")) {
    std::string inside = absl::StrCat("/proc/", pid, "/root", mapping.path);
    if (IsMappedFile(inside, mapping.inode)) {
      module = ElfModule::Open(inside);
    } else if (IsMappedFile(mapping.path, mapping.inode)) {
      module = ElfModule::Open(mapping.path);
    }
  }
  modules_.emplace(std::move(key), module);
  return module;
}

NativeSymbolizer::NativeSymbolizer(pid_t pid, std::string snapshot_path,
                                   ModuleCache* modules)
    : pid_(pid), snapshot_path_(std::move(snapshot_path)), modules_(modules) {
  maps_ = Maps::Parse(ReadText(snapshot_path_));
}

void NativeSymbolizer::Refresh() {
  refreshed_ns_ = MonotonicNs();
  Maps now = Maps::Parse(ReadText(absl::StrCat("/proc/", pid_, "/maps")));
  if (now.empty()) return;  // gone, or a zombie: the last snapshot stands
  maps_ = std::move(now);
  std::string fresh = snapshot_path_ + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << maps_.ToText();
  file.close();
  if (file) rename(fresh.c_str(), snapshot_path_.c_str());
}

const Mapping* NativeSymbolizer::FindMapping(uint64_t address) {
  const Mapping* mapping = maps_.Find(address);
  if (mapping != nullptr || MonotonicNs() - refreshed_ns_ < kRefreshPeriodNs) {
    return mapping;
  }
  Refresh();
  return maps_.Find(address);
}

std::vector<lull::v1::Frame> NativeSymbolizer::Look(uint64_t address) {
  std::vector<lull::v1::Frame> result;
  const Mapping* mapping = FindMapping(address);
  if (mapping == nullptr || mapping->path.empty()) {
    result.emplace_back().set_function(absl::StrFormat("0x%x", address));
    return result;
  }
  uint64_t offset = address - mapping->start + mapping->offset;
  uint64_t virtual_address = offset;
  std::vector<NativeFrame> frames;
  std::shared_ptr<ElfModule> module = modules_->Get(pid_, *mapping);
  if (module != nullptr && module->VirtualAddress(offset, &virtual_address)) {
    module->Resolve(virtual_address, &frames);
  }
  if (frames.empty()) frames.emplace_back();
  for (const NativeFrame& frame : frames) {
    lull::v1::Frame& out = result.emplace_back();
    out.set_function(frame.function.empty()
                         ? CleanText(absl::StrFormat("%s+0x%x", BaseName(mapping->path),
                                                     virtual_address))
                         : CleanText(frame.function, kMaxFunctionName));
    out.set_file(CleanText(frame.file));
    out.set_line(frame.line);
    out.set_module(CleanText(mapping->path));
  }
  return result;
}

void NativeSymbolizer::Resolve(
    uint64_t return_address,
    google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames) {
  if (known_.size() > kMaxKnownAddresses) known_.clear();
  auto [entry, added] = known_.try_emplace(return_address);
  // The call lies before the address that it returns to.
  if (added) entry->second = Look(return_address - 1);
  for (const lull::v1::Frame& frame : entry->second) *frames->Add() = frame;
}

}  // namespace lull::relay
