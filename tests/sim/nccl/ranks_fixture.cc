#include "tests/sim/nccl/ranks_fixture.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>

namespace lull::sim::nccl {
namespace {

const Api& load() {
  static const Api loaded = [] {
    Api api{};
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
#define X(name, parameters) \
  api.name = reinterpret_cast<int(*) parameters>(dlsym(library, #name));
    SIM_NCCL_FUNCTIONS(X)
#undef X
    using Text = const char*(int);
    api.ncclGetErrorString =
        reinterpret_cast<Text*>(dlsym(library, "ncclGetErrorString"));
    using Last = const char*(void*);
    api.ncclGetLastError = reinterpret_cast<Last*>(dlsym(library, "ncclGetLastError"));
    return api;
  }();
  return loaded;
}

std::vector<TruthRecord> all() {
  return read_truth(scratch_path("truth." + std::to_string(getpid())));
}

}  // namespace

RanksTest::RanksTest() : nccl(load()) {
  for (const TruthRecord& record : exchanges()) {
    before_ = std::max(before_, record.correlation);
  }
}

std::vector<void*> RanksTest::ranks(int size) {
  UniqueId id;
  EXPECT_EQ(nccl.ncclGetUniqueId(&id), 0);
  std::vector<void*> made(static_cast<size_t>(size));
  EXPECT_EQ(nccl.ncclGroupStart(), 0);
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(nccl.ncclCommInitRank(&made[static_cast<size_t>(rank)], size, id, rank),
              0);
    streams_.push_back(stream(false));
  }
  EXPECT_EQ(nccl.ncclGroupEnd(), 0);
  return made;
}

int RanksTest::error(void* communicator) const {
  int result = -1;
  EXPECT_EQ(nccl.ncclCommGetAsyncError(communicator, &result), 0);
  return result;
}

std::vector<TruthRecord> RanksTest::exchanges() const {
  std::vector<TruthRecord> found = all();
  std::erase_if(found, [this](const TruthRecord& record) {
    return record.type != static_cast<uint32_t>(RecordType::kExchange) ||
           record.correlation <= before_;
  });
  std::ranges::stable_sort(found, {}, &TruthRecord::correlation);
  return found;
}

std::string RanksTest::text(uint32_t name) const {
  std::string found;
  for (const TruthRecord& record : all()) {
    if (record.type != static_cast<uint32_t>(RecordType::kName)) continue;
    auto& part = reinterpret_cast<const TruthName&>(record);
    if (part.name != name) continue;
    found +=
        std::string(part.text, std::min<size_t>(kNameBytes, part.size - found.size()));
  }
  return found;
}

}  // namespace lull::sim::nccl
