#include "cli/render/marks.h"

#include <gtest/gtest.h>

#include "cli/render/human.h"
#include "cli/render/json.h"
#include "tests/cli/fixed_replies.h"
#include "tests/cli/golden.h"
#include "tests/cli/parsed_json.h"

namespace lull {
namespace {

using namespace testing;  // NOLINT: the fixed replies and the golden files

v1::MarkReply Reply(bool pinned) {
  v1::MarkReply reply;
  *reply.add_jobs() = FixedJob();
  *reply.add_jobs() = FixedJob();
  reply.mutable_jobs(0)->set_pinned(pinned);
  reply.mutable_jobs(0)->add_tags("naive");
  reply.mutable_jobs(0)->add_tags("nightly");
  reply.mutable_jobs(1)->clear_name();
  reply.set_database_bytes(uint64_t{3} << 30);
  reply.set_max_database_bytes(uint64_t{20} << 30);
  return reply;
}

TEST(Marks, AreToldOfEachJobAndAPinSaysHowFullTheDatabaseIs) {
  ExpectGolden("marks", MarkedText(Reply(true)) + MarkedText(Reply(false)));
}

// Of a collector that checks no tags, say: a terminal obeys none.
TEST(Marks, HaveNoCommandsForATerminal) {
  v1::MarkReply reply = Reply(true);
  reply.mutable_jobs(0)->set_tags(0, "\x1b]0;x\x07");
  v1::ListJobsReply jobs;
  *jobs.add_jobs() = reply.jobs(0);
  v1::ListJobsReply none;
  none.add_tags("\x1b[2J");
  EXPECT_EQ((MarkedText(reply) + JobsText(jobs) + JobsText(none)).find('\x1b'),
            std::string::npos);
}

TEST(Marks, AreInJson) {
  Json json = Parsed(MarkedJson(Reply(true)));
  EXPECT_EQ(json["jobs"][0]["tags"], Json({"naive", "nightly"}));
  EXPECT_EQ(json["jobs"][0]["pinned"], true);
  EXPECT_EQ(json["jobs"][1]["tags"], Json::array());
  EXPECT_EQ(json["jobs"][1]["pinned"], false);
  EXPECT_EQ(json["database_bytes"], uint64_t{3} << 30);
  EXPECT_EQ(json["max_database_bytes"], uint64_t{20} << 30);
}

TEST(Marks, StandInTheListOfJobsIfAnyJobHasSome) {
  v1::ListJobsReply jobs = FixedJobs();
  jobs.mutable_jobs(1)->set_pinned(true);
  jobs.mutable_jobs(2)->add_tags("naive");
  jobs.mutable_jobs(2)->add_tags("nightly");
  ExpectGolden("jobs_marked", JobsText(jobs));
}

TEST(Marks, ThatNoJobHasAreNamed) {
  v1::ListJobsReply reply;
  reply.add_tags("naive");
  EXPECT_EQ(JobsText(reply), "No job has the tag naive.\n");
  reply.add_tags("nightly");
  EXPECT_EQ(JobsText(reply), "No job has the tags naive, nightly.\n");
}

}  // namespace
}  // namespace lull
