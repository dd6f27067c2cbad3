#include "daemon/collector/serve/arm_desk.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lull::collector {
namespace {

using lull::v1::ArmCommand;
using lull::v1::ArmState;

constexpr char kJob[] = "0123456789abcdef0123456789abcdef";

ArmState State(uint64_t command, bool armed, uint32_t processes = 0) {
  ArmState state;
  state.set_command(command);
  state.set_armed(armed);
  state.set_processes(processes);
  return state;
}

ArmCommand Command(bool armed) {
  ArmCommand command;
  command.set_armed(armed);
  return command;
}

// A relay that keeps what it is told.
class Relay : public CommandListener {
 public:
  void SendCommand(const ArmCommand& command) override {
    std::lock_guard lock(mutex_);
    commands_.push_back(command);
    came_.notify_all();
  }
  std::vector<ArmCommand> WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::seconds(10),
                   [&] { return commands_.size() >= count; });
    return commands_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<ArmCommand> commands_;
};

class ArmDeskTest : public ::testing::Test {
 protected:
  // Orders on a thread of its own.
  std::thread Order(bool armed, absl::StatusOr<ArmState>* answer) {
    return std::thread(
        [this, armed, answer] { *answer = desk_.Order(kJob, Command(armed)); });
  }

  ArmDesk desk_{absl::Milliseconds(300), absl::Milliseconds(300)};
  std::shared_ptr<Relay> relay_ = std::make_shared<Relay>();
};

TEST_F(ArmDeskTest, AnswersOnceTheRelayHasDoneIt) {
  desk_.Arrived(kJob, relay_, State(0, false));
  absl::StatusOr<ArmState> answer;
  std::thread order = Order(true, &answer);
  std::vector<ArmCommand> commands = relay_->WaitFor(1);
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_EQ(commands[0].number(), 1u);
  EXPECT_TRUE(commands[0].armed());
  desk_.Reported(kJob, relay_.get(), State(0, false, 2));  // of something else
  desk_.Reported(kJob, relay_.get(), State(1, true, 2));
  order.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->armed());
  EXPECT_EQ(answer->processes(), 2u);
}

TEST_F(ArmDeskTest, NumbersGoOnFromWhereTheRelayStands) {
  desk_.Arrived(kJob, relay_, State(41, true));
  absl::StatusOr<ArmState> answer;
  std::thread order = Order(false, &answer);
  EXPECT_EQ(relay_->WaitFor(1).at(0).number(), 42u);
  desk_.Reported(kJob, relay_.get(), State(42, false));
  order.join();
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(ArmDeskTest, SaysThatTheRelayIsNotConnected) {
  EXPECT_EQ(desk_.Order(kJob, Command(true)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  desk_.Arrived(kJob, relay_, State(0, false));
  desk_.Left(kJob, relay_.get());
  absl::Status status = desk_.Order(kJob, Command(true)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("not connected"), std::string::npos);
  EXPECT_TRUE(relay_->WaitFor(0).empty());
}

TEST_F(ArmDeskTest, WaitsForARelayThatIsComingBack) {
  absl::StatusOr<ArmState> answer;
  std::thread order = Order(true, &answer);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  desk_.Arrived(kJob, relay_, State(0, false));
  EXPECT_EQ(relay_->WaitFor(1).size(), 1u);
  desk_.Reported(kJob, relay_.get(), State(1, true));
  order.join();
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(ArmDeskTest, SaysThatARelayTakesNoCommands) {
  desk_.Arrived(kJob, relay_, std::nullopt);
  absl::Status status = desk_.Order(kJob, Command(true)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("cannot be told"), std::string::npos);
}

TEST_F(ArmDeskTest, PassesOnWhatTheRelayRefuses) {
  desk_.Arrived(kJob, relay_, State(0, false));
  absl::StatusOr<ArmState> answer;
  std::thread order = Order(true, &answer);
  relay_->WaitFor(1);
  ArmState refused = State(1, false);
  refused.set_error("no GPU mode 9");
  desk_.Reported(kJob, relay_.get(), refused);
  order.join();
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(answer.status().message().find("no GPU mode 9"), std::string::npos);
}

TEST_F(ArmDeskTest, WhatWasNotConfirmedIsSentAgainToARelayThatComesBack) {
  desk_.Arrived(kJob, relay_, State(0, false));
  EXPECT_EQ(desk_.Order(kJob, Command(true)).status().code(),
            absl::StatusCode::kAborted);
  desk_.Left(kJob, relay_.get());
  auto again = std::make_shared<Relay>();
  desk_.Arrived(kJob, again, State(0, false));
  ASSERT_EQ(again->WaitFor(1).size(), 1u);
  EXPECT_EQ(again->WaitFor(1)[0].number(), 1u);
  EXPECT_TRUE(again->WaitFor(1)[0].armed());
  desk_.Reported(kJob, again.get(), State(1, true));
  auto third = std::make_shared<Relay>();
  desk_.Arrived(kJob, third, State(1, true));
  EXPECT_TRUE(third->WaitFor(0).empty()) << "it has been taken";
}

TEST_F(ArmDeskTest, AStreamThatItsSuccessorHasReplacedIsNotHeard) {
  auto successor = std::make_shared<Relay>();
  desk_.Arrived(kJob, relay_, State(0, false));
  desk_.Arrived(kJob, successor, State(0, false));
  desk_.Reported(kJob, relay_.get(), State(9, true));
  desk_.Left(kJob, relay_.get());
  absl::StatusOr<ArmState> answer;
  std::thread order = Order(true, &answer);
  EXPECT_EQ(successor->WaitFor(1).at(0).number(), 1u);
  desk_.Reported(kJob, successor.get(), State(1, true));
  order.join();
  EXPECT_TRUE(answer.ok()) << answer.status();
}

TEST_F(ArmDeskTest, AJobThatEndsMeanwhileIsSaidToHaveEnded) {
  desk_.Arrived(kJob, relay_, State(0, false));
  absl::StatusOr<ArmState> answer;
  std::thread order = Order(true, &answer);
  relay_->WaitFor(1);
  desk_.JobEnded(kJob);
  order.join();
  EXPECT_NE(answer.status().message().find("ended"), std::string::npos);
}

// Its streams are cut by the collector; the last answer is not that nobody reports.
TEST_F(ArmDeskTest, RelaysAreThereUntilTheEndOfACollectorThatStops) {
  desk_.Arrived(kJob, relay_, State(0, true));
  desk_.Stop();
  desk_.Left(kJob, relay_.get());
  EXPECT_TRUE(desk_.HasRelay(kJob));
  desk_.JobEnded(kJob);
  EXPECT_FALSE(desk_.HasRelay(kJob));
}

TEST_F(ArmDeskTest, NobodyWaitsForACollectorThatStops) {
  ArmDesk desk(absl::Seconds(60), absl::Seconds(60));
  absl::StatusOr<ArmState> answer;
  std::thread order([&] { answer = desk.Order(kJob, Command(true)); });
  desk.Stop();
  order.join();
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lull::collector
