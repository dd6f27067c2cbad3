// Native return addresses of one process to frames, at any time: also when the
// process has ended meanwhile, through the last snapshot of its mappings.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "daemon/relay/elf_module.h"
#include "daemon/relay/maps.h"
#include "events.pb.h"

namespace lull::relay {

// Files that were opened once, shared by all processes of a job: eight ranks read
// libtorch's symbols once. Known by device independent identity (inode, path).
class ModuleCache {
 public:
  // `pid`: whose mount namespace to look in first; the plain path comes second.
  // nullptr when the file cannot be read or is not the one that was mapped.
  std::shared_ptr<ElfModule> Get(pid_t pid, const Mapping& mapping);

 private:
  std::map<std::pair<uint64_t, std::string>, std::shared_ptr<ElfModule>> modules_;
};

class NativeSymbolizer {
 public:
  // `snapshot_path`: where the mappings are kept for a successor; one that is
  // there already is read first (a worker that was restarted).
  NativeSymbolizer(pid_t pid, std::string snapshot_path, ModuleCache* modules);

  // Reads /proc/PID/maps again, unless the process is gone.
  void Refresh();

  // Appends the frames of a return address, innermost first: one or, with inlined
  // calls, several. A function without a name is "module+0xoffset" where the
  // module is known, else the bare address.
  void Resolve(uint64_t return_address,
               google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames);

 private:
  const Mapping* FindMapping(uint64_t address);
  std::vector<lull::v1::Frame> Look(uint64_t address);

  pid_t pid_;
  std::string snapshot_path_;
  ModuleCache* modules_;
  Maps maps_;
  uint64_t refreshed_ns_ = 0;
  std::unordered_map<uint64_t, std::vector<lull::v1::Frame>> known_;
};

}  // namespace lull::relay
