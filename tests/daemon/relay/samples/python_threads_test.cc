// Threads that run Python, found in memory that looks like an interpreter's: ours.
#include "daemon/relay/samples/python_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <latch>
#include <thread>

#include "preload/stacks/layouts/cpython_3_11.h"

namespace lull::relay {
namespace {

// A PyThreadState as far as it is read.
struct State {
  alignas(8) std::array<char, 512> bytes = {};

  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes.data()); }
  void Set(int offset, uint64_t value) {
    memcpy(bytes.data() + offset, &value, sizeof(value));
  }
};

void Link(State* newer, State* older) {
  newer->Set(abi::kStateNext, older->address());
  older->Set(abi::kStatePrevious, newer->address());
}

class Thread {
 public:
  Thread() : thread_([this] { Run(); }) { begun_.wait(); }
  ~Thread() { End(); }
  void End() {
    if (!thread_.joinable()) return;
    over_.count_down();
    thread_.join();
  }
  uint32_t tid() const { return tid_; }
  uint64_t self() const { return self_; }

 private:
  void Run() {
    tid_ = static_cast<uint32_t>(syscall(SYS_gettid));
    self_ = static_cast<uint64_t>(pthread_self());
    begun_.count_down();
    over_.wait();
  }

  std::latch begun_{1};
  std::latch over_{1};
  uint32_t tid_ = 0;
  uint64_t self_ = 0;
  std::thread thread_;  // last: it uses all of the above
};

class PythonThreadsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kType = 0x7f0000001000;

  PythonThreadsTest()
      : layout_(*FrameLayout::Of(kCPython311, kType)), threads_(getpid(), nullptr) {
    if (getpid() == static_cast<pid_t>(syscall(SYS_gettid))) {
      main_self_ = static_cast<uint64_t>(pthread_self());
    }
    main_.Set(layout_.at.tstate_thread_id, main_self_);
    other_.Set(layout_.at.tstate_thread_id, thread_.self());
    Link(&other_, &main_);
  }
  std::vector<PythonThread> Others() {
    return threads_.Others(layout_, main_.address(), main_self_);
  }

  const FrameLayout layout_;
  uint64_t main_self_ = 0;
  State main_, other_;
  Thread thread_;
  PythonThreads threads_;
};

TEST_F(PythonThreadsTest, AreFoundWithTheirNumbers) {
  ASSERT_NE(main_self_, 0u) << "the test does not run on the main thread";
  for (int look = 0; look < 2; ++look) {  // the second knows it already
    auto others = Others();
    ASSERT_EQ(others.size(), 1u);
    EXPECT_EQ(others[0].tid, thread_.tid());
    EXPECT_EQ(others[0].state, other_.address());
    EXPECT_EQ(others[0].thread, thread_.self());
  }
}

TEST_F(PythonThreadsTest, MayBeOlderThanTheMainOne) {
  State older;
  Thread thread;
  older.Set(layout_.at.tstate_thread_id, thread.self());
  Link(&main_, &older);
  auto others = Others();
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[1].tid, thread.tid());
}

TEST_F(PythonThreadsTest, AreNotBelievedWhereTheListIsNoList) {
  other_.Set(abi::kStateNext, main_.address() + 8);
  EXPECT_TRUE(Others().empty());
  main_.Set(abi::kStatePrevious, 16);
  EXPECT_TRUE(Others().empty());
  main_.Set(abi::kStatePrevious, 0x7ffffffff000);  // nothing is there
  EXPECT_TRUE(Others().empty());
}

TEST_F(PythonThreadsTest, AreNotBelievedWhereThereIsNoSuchThread) {
  constexpr uint32_t kNobody = 0x3fffffff;
  std::array<uint32_t, 256> words;
  words.fill(kNobody);
  other_.Set(layout_.at.tstate_thread_id, reinterpret_cast<uint64_t>(words.data()));
  EXPECT_TRUE(Others().empty());
}

TEST_F(PythonThreadsTest, EndAListThatGoesRoundInCircles) {
  Link(&main_, &other_);  // beside Link(&other_, &main_)
  EXPECT_LE(Others().size(), PythonThreads::kMost);
}

}  // namespace
}  // namespace lull::relay
