// The files that have symbols. Each is read once for all processes of a job that belong
// to one user: eight ranks read libtorch's symbols once. A process with the rights of
// that user reads them, see symbol_reader.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/relay/symbols/maps.h"
#include "daemon/relay/symbols/symbol_reader.h"

namespace lull::relay {

// A process whose mappings are looked up.
struct MappedBy {
  pid_t pid = 0;
  uid_t uid = 0;  // of root: read as nobody
  gid_t gid = 0;
  // Its root folder, for when it is gone; may be null.
  std::shared_ptr<const UniqueFd> root = nullptr;

  // Finds out who owns the process. One that is gone, or that does not let itself be
  // looked into, counts as root's.
  static MappedBy Process(pid_t pid);
};

// All calls come from one thread.
class ModuleCache {
 public:
  enum class Outcome {
    kKnown,   // the answer has what the file says
    kNoFile,  // it is not there any more, or is no ELF file
    kUnread,  // its reader died over it, took too long, or cannot be started
  };

  // `patience`: how long a reader may take for one answer, a third of it in processor
  // time. Reading the largest libraries takes a second or two, and the machine may be
  // busy.
  // `gets_on`: see SymbolReader. A call here may take as long as many answers.
  explicit ModuleCache(absl::Duration patience = absl::Seconds(30),
                       std::function<void()> gets_on = nullptr)
      : patience_(patience), gets_on_(std::move(gets_on)) {}

  struct Place {
    const Mapping* mapping = nullptr;
    uint64_t offset = 0;  // in the file
    Outcome outcome = Outcome::kUnread;
    SymbolAnswer answer;  // for kKnown
  };
  // What is known about the code at some places of a process. Waits for a reader;
  // longest for a file with which two readers run out of time.
  void Resolve(const MappedBy& process, std::vector<Place>* places);

  // Has the large files of a process read in the background. Cheap for those that are
  // known.
  void Prepare(const MappedBy& process, const Maps& maps);

  // A prepared file has been read: Resolve() would not wait for that.
  bool Has(const MappedBy& process, const Mapping& mapping);

  // Some file that is to be prepared has not been read yet.
  bool IsReading();

  // Source lines, asked of the process's reader all at once; as
  // SymbolReader::Resolve(). No answers where there is no reader.
  void Quote(const MappedBy& process, const std::vector<SymbolReader::Question>& lines,
             std::vector<SymbolAnswer>* answers);

  // Processor time of all readers.
  uint64_t CpuNs() const;

  // Ends all readers, and waits for that.
  void EndReaders() { readers_.clear(); }

  // The reader of a process's files; starts it. nullptr where that is not possible.
  SymbolReader* ReaderOf(const MappedBy& process);

 private:
  using Owner = std::pair<uid_t, gid_t>;
  using Key = std::tuple<Owner, uint64_t, uint64_t, std::string>;
  struct Module {
    uint32_t number = 0;
    uint32_t given_to = 0;  // generation of the reader that has the file; 0: none
    uint32_t failures = 0;  // readers that died over it
    bool no_file = false;
  };

  Module* Find(const MappedBy& process, const Mapping& mapping);
  // Nothing more to ask about the place.
  bool IsSettled(const MappedBy& process, SymbolReader* reader, Place* place,
                 UniqueFd* file);
  // Charges the death of a reader in the background to the file that it was at.
  void Look(SymbolReader* reader);
  void Charge(uint32_t number);

  const absl::Duration patience_;
  const std::function<void()> gets_on_;
  std::map<Key, Module> modules_;
  std::map<uint32_t, Module*> by_number_;
  std::map<Owner, std::unique_ptr<SymbolReader>> readers_;
};

}  // namespace lull::relay
