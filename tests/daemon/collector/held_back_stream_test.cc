// Streams that are told to wait after each request, over a real connection.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/collector/serve/gate.h"
#include "daemon/collector/serve/ingest_service.h"
#include "daemon/storage/store.h"
#include "tests/daemon/collector/fake_relay.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

// While one thread of gRPC hands a request over, another may have the next one already.
TEST(HeldBackStream, LosesAndMixesNothing) {
  constexpr uint32_t kStreams = 4, kBatches = 400, kEvents = 50;
  test::TemporaryDirectory directory;
  auto store = storage::Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  CommitterOptions options;
  options.max_stream_bytes = 1;
  Committer committer(**store, options);
  Gate gate(Tokens{}, false);
  ArmDesk desk;
  IngestService service(gate, committer, desk);
  grpc::ServerBuilder builder;
  const std::string address = "unix:" + (directory / "c.sock");
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());

  auto run = [&](uint32_t number) {
    test::FakeRelay relay(channel);
    relay.Send(test::MakeHello(test::MakeJobId(number)));
    for (uint64_t i = 0; i < kBatches; ++i) {
      lull::v1::Batch batch;
      batch.set_sequence(i + 1);
      test::TestEvent event;
      event.type = v1::EVENT_TYPE_SYNC;
      event.api = test::kApiSync;
      test::AddRun(batch, 1, 0, i * kEvents, {kEvents, event});
      if (!relay.Send(batch)) break;
    }
    const grpc::Status ended = relay.End(/*done_writing=*/true);
    EXPECT_TRUE(ended.ok()) << ended.error_message();
    EXPECT_EQ(relay.acknowledged(), kBatches);
  };
  std::vector<std::thread> relays;
  for (uint32_t number = 1; number <= kStreams; ++number) {
    relays.emplace_back(run, number);
  }
  for (std::thread& relay : relays) relay.join();
  committer.Stop();
  EXPECT_EQ(committer.events_stored(), uint64_t{kStreams} * kBatches * kEvents);
  server->Shutdown();
}

}  // namespace
}  // namespace lull::collector
