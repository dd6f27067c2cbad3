// Native return addresses of one process to frames, at any time: also when the
// process has ended meanwhile, through the last snapshot of its mappings.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/maps.h"
#include "daemon/relay/symbols/maps_reader.h"
#include "daemon/relay/symbols/module_cache.h"
#include "events.pb.h"

namespace lull::relay {

// All calls come from one thread, but for the first ones of another.
class NativeSymbolizer {
 public:
  // `snapshot_path`: where the mappings are kept for a successor; one that is
  // there already is read first (a worker that was restarted). `memory`: the process's
  // own descriptor of itself; may be null, or hold none: then what it becomes by exec
  // cannot be told from what it was. `read`: instead of reading /proc/PID/maps, for
  // tests.
  NativeSymbolizer(pid_t pid, std::string snapshot_path, ModuleCache* modules,
                   std::shared_ptr<const UniqueFd> memory = nullptr,
                   std::function<Maps()> read = nullptr);

  // Begins to read /proc/PID/maps again. What is found counts unless the process is
  // gone or another program by then.
  void Refresh() { reader_->Start(); }
  // Who reads them: for other threads, to have them read in time.
  std::shared_ptr<MapsReader> maps_reader() const { return reader_; }

  // Has the symbols of large libraries that were loaded meanwhile read in the
  // background. Call it now and then: it does nothing if the process has not grown.
  void Prepare();
  // The same, but waits for the mappings, though not for the symbols: for when nothing
  // is recorded yet.
  void PrepareNow();

  // Looks up the return addresses of a stack together, which costs less than one by
  // one. Only a hint for the calls of Resolve() that follow.
  void Expect(const uint64_t* return_addresses, size_t count);

  // Appends the frames of a return address, innermost first: one or, with inlined
  // calls, several. A function without a name is "module+0xoffset" where the
  // module is known, else the bare address.
  void Resolve(uint64_t return_address,
               google::protobuf::RepeatedPtrField<lull::v1::Frame>* frames);

  // Programs and libraries whose functions have no names, because reading their symbols
  // failed. One stands for all of a process whose mappings could never be read.
  uint32_t modules_unread() const { return static_cast<uint32_t>(unread_.size()); }

 private:
  const Mapping* FindMapping(uint64_t address);
  void GoOnPreparing();
  // Waits for a reading that is under way, if it is not too late for that.
  void Wait();
  bool TakeWhatWasRead(absl::Duration patience);

  MappedBy process_;
  const std::shared_ptr<MapsReader> reader_;
  ModuleCache* modules_;
  std::shared_ptr<const Maps> maps_;
  uint64_t prepared_pages_ = 0;  // of address space, when Prepare() looked last
  bool prepare_ = false;         // what is being read then
  std::unordered_map<uint64_t, std::vector<lull::v1::Frame>> known_;
  // Of them: the mappings were still being read, or had been read before there was such
  // an address. True: somebody was told so; otherwise it is looked at again.
  std::map<uint64_t, bool> unsure_;
  std::set<std::string> unread_;  // paths
};

}  // namespace lull::relay
