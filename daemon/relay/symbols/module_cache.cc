#include "daemon/relay/symbols/module_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/logging.h"
#include "daemon/relay/symbols/mapped_file.h"

namespace lull::relay {
namespace {

// Bytes of mapped code; the files are larger. Smaller ones are opened in no time.
constexpr uint64_t kLargeBytes = 1 << 20;
// The first time may have been another file's fault, or that of a full machine.
constexpr uint32_t kMaxFailures = 2;

// Without root's rights there are none to give up, and one reader will do.
std::pair<uid_t, gid_t> OwnerOf(const MappedBy& process) {
  if (geteuid() != 0) return {geteuid(), getegid()};
  return {process.uid, process.gid};
}

UniqueFd Open(const MappedBy& process, const Mapping& mapping) {
  return OpenMappedFile(process.pid, mapping,
                        process.root != nullptr ? process.root->get() : -1);
}

}  // namespace

MappedBy MappedBy::Process(pid_t pid) {
  MappedBy process;
  process.pid = pid;
  struct stat info;
  if (stat(absl::StrCat("/proc/", pid).c_str(), &info) == 0) {
    process.uid = info.st_uid;
    process.gid = info.st_gid;
  }
  return process;
}

SymbolReader* ModuleCache::ReaderOf(const MappedBy& process) {
  auto& reader = readers_[OwnerOf(process)];
  if (reader == nullptr) {
    reader =
        std::make_unique<SymbolReader>(process.uid, process.gid, patience_, gets_on_);
  }
  Look(reader.get());
  return reader->Ensure() ? reader.get() : nullptr;
}

ModuleCache::Module* ModuleCache::Find(const MappedBy& process,
                                       const Mapping& mapping) {
  auto [it, added] = modules_.try_emplace(
      {OwnerOf(process), mapping.device, mapping.inode, mapping.path});
  Module& module = it->second;
  if (added) {
    module.number = static_cast<uint32_t>(modules_.size());
    module.no_file = !absl::StartsWith(mapping.path, "/");
    by_number_[module.number] = &module;
  }
  return &module;
}

void ModuleCache::Charge(uint32_t number) {
  auto it = by_number_.find(number);
  if (it == by_number_.end() || ++it->second->failures != kMaxFailures) return;
  for (const auto& [key, module] : modules_) {
    if (module.number != number) continue;
    LogWarning(absl::StrCat("functions of ", std::get<std::string>(key),
                            " have no names: reading its symbols failed ", kMaxFailures,
                            " times"));
  }
}

void ModuleCache::Look(SymbolReader* reader) {
  if (reader->Look()) return;
  std::optional<uint32_t> was_reading = reader->TakeUnfinished();
  if (was_reading) Charge(*was_reading);
}

// Otherwise `file` is what the reader needs to be given first.
bool ModuleCache::IsSettled(const MappedBy& process, SymbolReader* reader, Place* place,
                            UniqueFd* file) {
  Module* module = Find(process, *place->mapping);
  if (module->failures < kMaxFailures && !module->no_file && reader != nullptr &&
      module->given_to != reader->generation()) {
    *file = Open(process, *place->mapping);
    module->no_file = !*file;
    if (*file) module->given_to = reader->generation();
  }
  place->outcome = module->no_file ? Outcome::kNoFile : Outcome::kUnread;
  return module->no_file || module->failures >= kMaxFailures || reader == nullptr;
}

void ModuleCache::Resolve(const MappedBy& process, std::vector<Place>* places) {
  for (size_t next = 0; next < places->size();) {
    SymbolReader* reader = ReaderOf(process);
    std::vector<SymbolReader::Question> questions;
    std::vector<Place*> asked;
    for (size_t i = next; i < places->size(); ++i) {
      Place& place = (*places)[i];
      UniqueFd file;
      if (IsSettled(process, reader, &place, &file)) continue;
      questions.push_back(
          {Find(process, *place.mapping)->number, place.offset, std::move(file)});
      asked.push_back(&place);
    }
    if (questions.empty()) return;
    std::vector<SymbolAnswer> answers;
    reader->Resolve(questions, &answers);
    for (size_t i = 0; i < answers.size(); ++i) {
      bool is_elf = answers[i].is_elf;
      Find(process, *asked[i]->mapping)->no_file = !is_elf;
      asked[i]->outcome = is_elf ? Outcome::kKnown : Outcome::kNoFile;
      asked[i]->answer = std::move(answers[i]);
    }
    if (answers.size() == questions.size()) return;
    // Again from the one over which it died; those behind it were not looked at.
    uint32_t fatal = questions[answers.size()].module;
    Charge(fatal);
    std::optional<uint32_t> beside = reader->TakeUnfinished();
    if (beside && *beside != fatal) Charge(*beside);
    next = static_cast<size_t>(asked[answers.size()] - places->data());
  }
}

void ModuleCache::Quote(const MappedBy& process,
                        const std::vector<SymbolReader::Question>& lines,
                        std::vector<SymbolAnswer>* answers) {
  SymbolReader* reader = ReaderOf(process);
  if (reader == nullptr) return;
  reader->Resolve(lines, answers);
  if (answers->size() == lines.size()) return;
  std::optional<uint32_t> beside = reader->TakeUnfinished();
  if (beside) Charge(*beside);
}

void ModuleCache::Prepare(const MappedBy& process, const Maps& maps) {
  for (const Mapping& mapping : maps.mappings()) {
    if (mapping.end - mapping.start < kLargeBytes) continue;
    Module* module = Find(process, mapping);
    // One that a reader died with is read when it is needed, and none beside it.
    if (module->given_to != 0 || module->no_file || module->failures > 0) continue;
    SymbolReader* reader = ReaderOf(process);
    if (reader == nullptr) return;
    UniqueFd file = Open(process, mapping);
    module->no_file = !file;
    if (file && reader->Prepare(module->number, file.get())) {
      module->given_to = reader->generation();
    }
  }
}

bool ModuleCache::Has(const MappedBy& process, const Mapping& mapping) {
  Module* module = Find(process, mapping);
  SymbolReader* reader = ReaderOf(process);
  return reader != nullptr && module->given_to == reader->generation() &&
         reader->HasRead(module->number);
}

bool ModuleCache::IsReading() {
  bool reading = false;
  for (const auto& [owner, reader] : readers_) {
    Look(reader.get());
    reading = reading || reader->IsReading();
  }
  return reading;
}

uint64_t ModuleCache::CpuNs() const {
  uint64_t sum = 0;
  for (const auto& [owner, reader] : readers_) sum += reader->CpuNs();
  return sum;
}

}  // namespace lull::relay
