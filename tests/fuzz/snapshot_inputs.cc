#include "tests/fuzz/snapshot_inputs.h"

#include "daemon/import/snapshot_events.h"
#include "daemon/import/snapshot_reader.h"
#include "tests/daemon/import/pickle_writer.h"
#include "tests/fuzz/checked_sink.h"

namespace lull::imports {
namespace {

using namespace pickled;

std::string WithHistory() {
  constexpr int64_t kStart = 1'790'000'000'000'000;
  const std::string frames =
      List({pickled::Frame("/me/train.py", 12, "step"),
            pickled::Frame("x.cpp", 0, "at::_ops::mm::call(x)")});
  return pickled::Snapshot(
      {Segment(4096, {Block(4096, 1024, "inactive", 0),
                      Block(5120, 512, "active_allocated", 500, frames)}),
       Segment(1 << 20, {Block(1 << 20, 512, "active_pending_free", 500, frames),
                         Block((1 << 20) + 512, 512, "active_allocated", 1, frames)})},
      {Entry("segment_alloc", 4096, 1536, kStart, frames),
       Entry("alloc", 4096, 1000, kStart, frames),
       Entry("alloc", 5120, 500, kStart + 5, frames),
       Entry("free_requested", 4096, 1000, kStart + 9),
       Entry("free_completed", 4096, 1000, kStart + 9),
       Entry("free_requested", 9216, 3, kStart + 10), Entry("oom", 1, 1 << 30, kStart),
       Entry("segment_free", 8192, 512, kStart + 11),
       Entry("snapshot", 0, 2048, kStart + 12)});
}

}  // namespace

void FuzzSnapshot(std::string_view input) {
  SnapshotLimits limits;
  limits.records = 10'000;
  limits.bytes = 4 << 20;
  auto snapshot = ReadSnapshot(*Input::OfBytes(std::string(input)), limits);
  if (!snapshot.ok()) return;
  ApiTable apis;
  ImportCounts counts;
  auto sink = CheckedSink();
  // Times that lie years apart are refused there.
  TranslateSnapshot(*snapshot, 1, apis, sink, &counts).IgnoreError();
}

std::vector<std::string> SnapshotSeeds() {
  const std::string old_block =
      Dict({{"size", Number(512)},
            {"state", Text("active_allocated")},
            {"history",
             List({Dict({{"addr", Number(4608)},
                         {"real_size", Number(77)},
                         {"frames", List({pickled::Frame("a.py", 1, "f")})}})})}});
  // Lists that are kept, and asked for again.
  const std::string kept = std::string("}(") + Text("segments") + "]\x94" +
                           Text("device_traces") +
                           std::string(
                               "](h\x00h\x00"
                               "e",
                               7) +
                           Text("allocator_settings") +
                           std::string("}(\x8c\x01xN\x8c\x01yK\x01K\x02\x86uu", 16);
  return {Whole(WithHistory()), Whole(List({Segment(4096, {old_block})})), Whole(kept),
          "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R."};
}

}  // namespace lull::imports
