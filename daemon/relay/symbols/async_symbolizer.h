// Names of native functions, found beside those who read rings: symbol tables of
// hundreds of megabytes take seconds on a full machine, and a file system may hang.
//
// Whoever reads rings says which return addresses there are, and goes on: batches go
// into the spool with bare addresses (StackDef.return_addresses). Whoever sends them
// has frames put in their place, which by then are mostly known. A thread finds
// them out (native_symbolizer.h); the processes that read symbol tables for it yield to
// others. It does not yield itself: it reads /proc/PID/maps, under a lock of the
// process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/mutex.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/maps_reader.h"
#include "ingest.pb.h"

namespace lull::relay {

class AsyncSymbolizer {
 public:
  // Starts nothing yet. `directory`: where snapshots of mappings are kept, as maps.KEY,
  // for a successor. `patience`: the first batch for which nothing is found out for so
  // long goes without names, and all others then do: a file system hangs. It is more
  // than `reader_patience`, see ModuleCache: a file that a reader does not get through
  // costs the names of that file alone.
  explicit AsyncSymbolizer(std::string directory,
                           absl::Duration patience = absl::Seconds(45),
                           absl::Duration reader_patience = absl::Seconds(30));
  ~AsyncSymbolizer();  // End()
  AsyncSymbolizer(const AsyncSymbolizer&) = delete;
  AsyncSymbolizer& operator=(const AsyncSymbolizer&) = delete;

  // The reader of rings. Nothing of this waits.

  // A process, while it is there. `memory`: its own descriptor of itself; may be null.
  // `now`: it has loaded its libraries long ago; IsReading() until they are read.
  void Watch(uint64_t key, pid_t pid, std::shared_ptr<const UniqueFd> memory, bool now);
  // These will be asked for.
  void Expect(uint64_t key, absl::Span<const uint64_t> return_addresses);
  // No batch names it any more; nor will a successor need its snapshot.
  void Forget(uint64_t key);
  // Something that was said or asked for is still being found out, or a library that
  // is large is being read.
  bool IsReading() const;
  // The same without libraries that nobody has asked about.
  bool IsNaming() const;
  // Programs and libraries of a process whose functions have no names, as far as is
  // known; see NativeSymbolizer.
  uint32_t ModulesUnread(uint64_t key) const;
  uint64_t CpuNs() const;  // of the processes that read
  // Finds nothing out any more, and ends these processes. What is being read then is
  // given up, after 200 ms.
  void End();

  // The sender. Gives the stacks of the batch their frames, and its counters what is
  // known of ModulesUnread() then. Waits for that, but not for longer than kWait: false
  // then, and the batch is as it was. Ask again.
  bool Name(v1::Batch* batch);
  static constexpr absl::Duration kWait = absl::Milliseconds(100);

 private:
  struct State;
  struct Naming;
  // With the state's lock: has the thread do it, and starts that.
  void Do(std::function<void()> task) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // With it as well. True: what the sender waits for is done, or never will be.
  bool Await(MutexLock* lock) ABSL_NO_THREAD_SAFETY_ANALYSIS;

  const absl::Duration patience_;
  const std::shared_ptr<State> state_;  // of the thread, too, which may outlive this
  std::shared_ptr<Naming> naming_;      // the sender's own: what it waits for
  // The reader of rings' own.
  std::map<uint64_t, std::shared_ptr<MapsReader>> maps_;
};

// Frames that say no more than the addresses, in the place of those that a stack has.
void NameByAddress(v1::StackDef* stack);

}  // namespace lull::relay
