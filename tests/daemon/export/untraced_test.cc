// Where an export says that nobody looked at the GPU.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/export/export.h"
#include "daemon/storage/store.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::exports {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kStartNs = 1000 * kSecond;

// `windows` of one second each, every third second, of a job of `seconds`.
std::string Untraced(uint64_t windows, uint64_t seconds) {
  test::TemporaryDirectory directory;
  auto store = storage::Store::Open(directory / "a.db");
  EXPECT_TRUE(store.ok()) << store.status();
  storage::StoreWriter& writer = (*store)->writer();
  EXPECT_TRUE(writer.Begin().ok());
  storage::JobRow job;
  job.info.set_id(std::string(32, 'a'));
  job.info.set_start_ns(kStartNs);
  EXPECT_TRUE(writer.catalogue().PutJob(job).ok());
  storage::ProcessRow process;
  process.job = job.id;
  process.info.set_key(1);
  process.info.set_pid(7);
  process.info.set_start_ns(kStartNs);
  process.end_ns = kStartNs + seconds * kSecond;
  EXPECT_TRUE(writer.catalogue().PutProcess(process).ok());
  EXPECT_TRUE(writer.catalogue().Put(process.id, storage::GpuDeviceRow{}).ok());
  std::vector<storage::TracingRow> changes;
  for (uint64_t i = 0; i < windows; ++i) {
    const uint64_t at_ns = kStartNs + (3 * i + 1) * kSecond;
    changes.push_back({.start_ns = at_ns, .state = v1::TRACING_STATE_ACTIVE});
    changes.push_back({.start_ns = at_ns + kSecond, .state = v1::TRACING_STATE_OFF});
  }
  EXPECT_TRUE(writer.catalogue().PutAll(process.id, changes).ok());
  EXPECT_TRUE(writer.Commit().ok());

  v1::ExportRequest request;
  request.set_format(v1::EXPORT_FORMAT_CHROME);
  std::string whole;
  const absl::Status status =
      Export(**store, request, [&](absl::string_view bytes, double) {
        absl::StrAppend(&whole, bytes);
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  // "ts":T,"dur":D of each, in seconds
  std::string told;
  for (size_t at = 0; (at = whole.find("not traced", at)) != std::string::npos; ++at) {
    const double ts = std::stod(whole.substr(whole.find("\"ts\":", at) + 5));
    const double dur = std::stod(whole.substr(whole.find("\"dur\":", at) + 6));
    absl::StrAppend(&told, ts / 1e6, "+", dur / 1e6, " ");
  }
  return told;
}

TEST(Untraced, IsWhatLiesBetweenWindows) {
  EXPECT_EQ(Untraced(2, 20), "0+1 2+2 5+15 ");
  EXPECT_EQ(Untraced(0, 20), "") << "nothing was traced, and nothing is drawn";
}

TEST(Untraced, IsNotClaimedBeyondTheChangesThatAreKept) {
  const uint64_t windows = storage::kMostTracing / 2;
  const std::string told = Untraced(windows, 3 * windows + 1000);
  EXPECT_NE(told.find("2+2 "), std::string::npos);
  EXPECT_EQ(told.find("+1001 "), std::string::npos) << told.substr(told.size() - 100);
}

}  // namespace
}  // namespace lull::exports
