#include "daemon/import/trace_files.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/import/input.h"

namespace lull::imports {
namespace {

namespace fs = std::filesystem;

// Version of what an import makes of a file. Another version makes another job of it.
constexpr absl::string_view kVersion = "lull import 4";

bool IsTraceName(const std::string& name) {
  return absl::EndsWith(name, ".json") || absl::EndsWith(name, ".json.gz") ||
         absl::EndsWith(name, ".sqlite");
}

bool IsSnapshotName(const std::string& name) {
  return absl::EndsWith(name, ".pickle") || absl::EndsWith(name, ".pickle.gz");
}

absl::StatusOr<std::vector<std::string>> TracesIn(const std::string& folder) {
  std::vector<std::string> found, snapshots;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    // A link that leads nowhere, or to itself, is no trace.
    std::error_code unreadable;
    if (entry->is_regular_file(unreadable)) {
      const std::string name = entry->path().filename().string();
      if (IsTraceName(name)) found.push_back(entry->path().string());
      if (IsSnapshotName(name)) snapshots.push_back(entry->path().string());
    }
    entry.increment(error);
  }
  if (error) return ErrnoStatus(error.value(), folder);
  // Beside traces there may be pickles of anything.
  if (found.empty()) found = std::move(snapshots);
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        folder, ": no .json, .json.gz, .sqlite or .pickle in this folder"));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string Sha256(const std::string& bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return std::string(reinterpret_cast<const char*>(digest.data()), size);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindTraces(
    const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    LULL_ASSIGN_OR_RETURN(auto found, TracesIn(path));
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

absl::StatusOr<std::string> JobIdOf(const std::vector<std::string>& files) {
  std::map<std::string, std::string> hashes;  // -> the file
  for (const std::string& file : files) {
    LULL_ASSIGN_OR_RETURN(std::string hash, HashOfFile(file));
    auto [it, fresh] = hashes.try_emplace(std::move(hash), file);
    if (!fresh) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, " is the same as ", it->second));
    }
  }
  std::string whole(kVersion);
  for (const auto& [hash, file] : hashes) whole += hash;
  return absl::BytesToHexString(Sha256(whole).substr(0, 16));
}

}  // namespace lull::imports
