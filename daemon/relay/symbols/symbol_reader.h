// The relay's end of a process that reads symbols in its stead.
//
// ELF and DWARF files of a target are what its user wrote. The relay may be root's, and
// libelf and libdw are large: so files are read by a process that has the rights of
// the target's user, and only answers questions. It may crash, hang, or lie about the
// symbols of that user's files, and no more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/symbol_protocol.h"

namespace lull::relay {

// All calls come from one thread. The process ends when that thread does.
class SymbolReader {
 public:
  // Starts nothing yet. The ids only matter if the relay is root. `patience`: how long
  // one answer may take, a third of it in processor time. `gets_on` is called when the
  // process has started, for each answer, and when the process is done without.
  SymbolReader(uid_t uid, gid_t gid, absl::Duration patience,
               std::function<void()> gets_on = nullptr)
      : uid_(uid),
        gid_(gid),
        patience_ns_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(patience))),
        gets_on_(std::move(gets_on)) {}
  ~SymbolReader() { Kill(); }
  SymbolReader(const SymbolReader&) = delete;
  SymbolReader& operator=(const SymbolReader&) = delete;

  // Starts the process unless it runs. False: it cannot be started, or does not come to
  // the point where it has given up its rights, or has died too often; it is not tried
  // again.
  bool Ensure();

  // Counts the processes: files that an earlier one was given the present one has not.
  uint32_t generation() const { return generation_; }

  // Has a file read in the background. False: no room for the request.
  bool Prepare(uint32_t module, int file);

  struct Question {
    uint32_t module = 0;
    uint64_t offset = 0;
    UniqueFd file;  // empty when this process has it
    // Not "": asks for the lines around line `offset` of a source file, as
    // SymbolRequest::Kind::kSource has it.
    std::string path = {};
    uint64_t not_after_ns = 0;
  };
  // Asks all at once, as each exchange takes longer than most answers, and appends the
  // answers in order. If there are fewer answers than questions, the process died over
  // the first question without an answer, took too long, or sent nonsense; it is gone.
  void Resolve(const std::vector<Question>& questions,
               std::vector<SymbolAnswer>* answers);

  // Takes note of what has been read. False when the process is found dead.
  bool Look();
  // If a process is gone that was to prepare files: the file that it was reading.
  // Returned once.
  std::optional<uint32_t> TakeUnfinished();
  // Whether the present process has read a file that it was to prepare.
  bool HasRead(uint32_t module) const;

  // A file that is to be prepared has not been read, as far as Look() knows.
  bool IsReading() const { return pid_ > 0 && !prepared_.empty(); }

  pid_t pid() const { return pid_; }  // -1: it does not run
  // Processor time of all processes so far.
  uint64_t CpuNs() const;

 private:
  enum class Got { kAnswer, kNotice, kNothing, kEnd };

  // False: not sent, for want of room or because the process is gone.
  bool Ask(const Question& question, uint64_t number);

  bool Start();
  bool AwaitReady();
  Got Take(SymbolAnswer* answer);
  struct Patience {
    uint64_t until_ns = 0;
    uint64_t until_cpu_ns = 0;  // of the process
  };
  Patience NewPatience() const;
  // Like poll(); false: it took too long.
  bool Wait(short events, const Patience& patience);
  void Kill();

  const uid_t uid_;
  const gid_t gid_;
  const uint64_t patience_ns_;
  const std::function<void()> gets_on_;  // may be empty
  UniqueFd socket_;
  pid_t pid_ = -1;
  uint32_t generation_ = 0;
  uint32_t deaths_ = 0;
  bool unusable_ = false;
  uint64_t number_ = 0;            // of the last request
  std::deque<uint32_t> prepared_;  // and not read as far as is known
  uint64_t cpu_of_dead_ns_ = 0;
};

}  // namespace lull::relay
