#include "daemon/relay/symbols/maps_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <vector>

#include "daemon/relay/symbols/native_symbolizer.h"

namespace lull::relay {
namespace {

constexpr char kOneFile[] = "10000000-10100000 r-xp 00001000 00:00 5 /opt/a/liba.so\n";

// A process whose mappings cannot be read until Go().
class BusyProcess {
 public:
  Maps Read() {
    ++begun_;
    may_go_.get_future().wait();
    return Maps::Parse(kOneFile);
  }
  void Go() { may_go_.set_value(); }
  int begun() const { return begun_; }

 private:
  std::promise<void> may_go_;
  std::atomic<int> begun_ = 0;
};

std::string NameOf(NativeSymbolizer& symbolizer, uint64_t address) {
  google::protobuf::RepeatedPtrField<lull::v1::Frame> frames;
  symbolizer.Resolve(address, &frames);
  return frames.empty() ? "" : frames[0].function();
}

TEST(MapsReader, ReadsBesideTheCaller) {
  BusyProcess process;
  MapsReader reader([&] { return process.Read(); });
  EXPECT_FALSE(reader.reading());
  EXPECT_FALSE(reader.Take(absl::InfiniteDuration())) << "nothing is under way";
  reader.Start();
  reader.Start();
  EXPECT_TRUE(reader.reading());
  EXPECT_FALSE(reader.Take(absl::ZeroDuration()));
  EXPECT_FALSE(reader.Take(absl::Milliseconds(1)));
  process.Go();
  auto maps = reader.Take(absl::Minutes(5));
  ASSERT_TRUE(maps);
  EXPECT_EQ(maps->mappings().size(), 1u);
  EXPECT_FALSE(reader.reading());
  EXPECT_FALSE(reader.Take(absl::ZeroDuration())) << "it was taken";
  EXPECT_EQ(process.begun(), 1);
}

TEST(MapsReader, HasNothingOfAProcessThatIsGone) {
  MapsReader reader([] { return Maps(); });
  reader.Start();
  EXPECT_FALSE(reader.Take(absl::Minutes(5)));
  reader.Start();  // and may be asked again
  EXPECT_FALSE(reader.Take(absl::Minutes(5)));
}

// Whoever reads the rings resolves stacks, too.
TEST(MapsReader, DoesNotHoldUpStacksForLongerThanTheyMayTake) {
  BusyProcess process;
  ModuleCache modules;
  NativeSymbolizer symbolizer(getpid(), "/nonexistent/maps", &modules, nullptr,
                              [&] { return process.Read(); });
  symbolizer.Refresh();
  for (int i = 0; i < 100; ++i) symbolizer.Prepare();
  EXPECT_EQ(NameOf(symbolizer, 0x10000101), "0x10000100");
  EXPECT_EQ(NameOf(symbolizer, 0x10000201), "0x10000200");
  EXPECT_EQ(NameOf(symbolizer, 0x30000001), "0x30000000");
  EXPECT_EQ(symbolizer.modules_unread(), 0u) << "nobody knows yet";
  process.Go();
  // The name is not given up for good.
  std::string name;
  for (int i = 0; i < 30'000 && name != "liba.so+0x1100"; ++i) {
    name = NameOf(symbolizer, 0x10000101);
    usleep(10'000);
  }
  EXPECT_EQ(name, "liba.so+0x1100");
  EXPECT_EQ(symbolizer.modules_unread(), 1u) << "stacks were told without the name";
}

// What was not sure of an address is forgotten with the address: the next reading must
// not take it away while it is being looked up again.
TEST(MapsReader, MayFindAnAddressThatWasForgottenMeanwhile) {
  BusyProcess process;
  ModuleCache modules;
  NativeSymbolizer symbolizer(getpid(), "/nonexistent/maps", &modules, nullptr, [&] {
    return process.begun() == 0 ? (process.Read(), Maps()) : Maps::Parse(kOneFile);
  });
  symbolizer.Refresh();
  EXPECT_EQ(NameOf(symbolizer, 0x10000101), "0x10000100");
  std::vector<uint64_t> others(1 << 17);
  for (size_t i = 0; i < others.size(); ++i) others[i] = 0x20000000 + i;
  symbolizer.Expect(others.data(), others.size());  // more than are kept
  process.Go();                                     // nothing could be read
  std::string name;
  for (int i = 0; i < 30'000 && name != "liba.so+0x1100"; ++i) {
    usleep(150'000);  // before it is read again
    symbolizer.Expect(others.data(), others.size());
    name = NameOf(symbolizer, 0x10000101);
  }
  EXPECT_EQ(name, "liba.so+0x1100");
}

}  // namespace
}  // namespace lull::relay
