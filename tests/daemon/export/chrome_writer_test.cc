#include "daemon/export/chrome_writer.h"

#include <gtest/gtest.h>

namespace lull::exports {
namespace {

TEST(ChromeWriter, EscapesWhatJsonWantsEscaped) {
  std::string out;
  AppendEscaped(std::string_view("a\"b\\c\nd\x01\0é", 11), &out);
  EXPECT_EQ(out, "a\\\"b\\\\c\\u000ad\\u0001\\u0000é");
}

TEST(ChromeWriter, WritesMicrosecondsToTheNanosecond) {
  Output output([](absl::string_view) { return absl::OkStatus(); });
  ChromeWriter writer(output);
  const std::string& out = output.bytes();
  ExportedJob job;
  job.processes.emplace_back().shown_pid = 12;
  writer.Begin(job);
  writer.BeginProcess(job.processes[0]);
  Label label;
  label.row = Row::kCall;
  label.category = "cuda_runtime";
  label.name = "cudaLaunchKernel";
  Slice slice;
  slice.start_ns = 1'234'005;
  slice.duration_ns = 7;
  slice.tid = 13;
  slice.correlation = 9;
  writer.Add(3, label, slice);
  EXPECT_NE(out.find(R"({"ph":"X","cat":"cuda_runtime","pid":12,)"
                     R"("name":"cudaLaunchKernel","tid":13,"ts":1234.005,"dur":0.007,)"
                     R"("args":{"correlation":9}},)"
                     "\n"
                     R"({"ph":"s","cat":"ac2g","name":"ac2g","id":9,"pid":12,"tid":13,)"
                     R"("ts":1234.005})"),
            std::string::npos)
      << out;
}

}  // namespace
}  // namespace lull::exports
