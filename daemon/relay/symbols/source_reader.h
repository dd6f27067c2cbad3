// Lines of source text, read beside the caller: a file system may hang, and whoever
// reads rings must not wait for one. A thread opens the files of root's processes, a
// process with the rights of their user those of others, as it does with symbols
// (symbol_reader.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/module_cache.h"
#include "daemon/relay/symbols/source_file.h"

namespace lull::relay {

struct SourceLine {
  std::string file;
  uint32_t line = 0;

  auto operator<=>(const SourceLine&) const = default;
};

// All calls come from one thread, and none of them waits for a file.
class SourceReader {
 public:
  using Open = std::function<UniqueFd(int root, const std::string& path)>;

  // Starts nothing yet. `open` opens root's files, on the thread.
  explicit SourceReader(Open open = OpenSource);
  // What is being read then is given up, after 200 ms.
  ~SourceReader();
  SourceReader(const SourceReader&) = delete;
  SourceReader& operator=(const SourceReader&) = delete;

  struct Request {
    MappedBy owner;
    std::shared_ptr<const UniqueFd> root;  // the process' root folder
    uint32_t process = 0;                  // any number of its own
    uint64_t not_after_ns = 0;             // as ReadSource() has it
    std::vector<SourceLine> lines = {};    // those of one file behind each other
  };
  // Nothing is read any more once a reading has failed.
  void Ask(Request request);

  struct Quoted {
    SourceLine at;
    Excerpt excerpt;
  };
  // What has been read since the last call. Lines without a text are left out.
  std::vector<Quoted> Take();

  // Something that was asked for has not been read.
  bool reading() const;
  // Processor time of the processes that read, as of the last request that was done.
  uint64_t CpuNs() const;

 private:
  struct State;
  static void Run(State* state);  // the thread

  const std::shared_ptr<State> state_;
  bool started_ = false;
};

}  // namespace lull::relay
