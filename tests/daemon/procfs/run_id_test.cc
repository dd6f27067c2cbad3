#include "daemon/procfs/run_id.h"

#include <gtest/gtest.h>

#include <string>

namespace lull {
namespace {

using namespace std::string_literals;

TEST(RunId, IsWhatTheInnermostLauncherCallsTheRun) {
  EXPECT_EQ(ReadRunId("PATH=/bin\0TORCHELASTIC_RUN_ID=llama-7\0"
                      "SLURM_JOB_ID=9\0SLURM_STEP_ID=0\0"s),
            "torchrun:llama-7");
  EXPECT_EQ(ReadRunId("SLURM_CLUSTER_NAME=big\0SLURM_JOB_ID=9\0SLURM_STEP_ID=2\0"
                      "PMIX_NAMESPACE=slurm.9.2\0"s),
            "slurm:big.9.2");
  EXPECT_EQ(ReadRunId("OMPI_MCA_orte_precondition_transports=0123-4567\0"
                      "PMIX_NAMESPACE=12345\0"s),
            "ompi:0123-4567");
  EXPECT_EQ(ReadRunId("PMIX_NAMESPACE=prterun-a-1@1\0"s), "pmix:prterun-a-1@1");
  EXPECT_EQ(ReadRunId("PMI_JOBID=3.0\0"s), "pmi:3.0");
}

// The ranks beside an mpirun in the script of sbatch, and those that it starts on other
// nodes by srun.
TEST(RunId, IsOneOnAllNodesOfAnMpirunBelowSlurm) {
  const std::string mpirun =
      "OMPI_MCA_orte_precondition_transports=0123-4567\0"
      "SLURM_CLUSTER_NAME=big\0SLURM_JOB_ID=9\0"s;
  EXPECT_EQ(ReadRunId(mpirun), "ompi:0123-4567");
  EXPECT_EQ(ReadRunId(mpirun + "SLURM_STEP_ID=0\0"s), "ompi:0123-4567");
}

TEST(RunId, IsWhatAPersonSaysBeforeAllLaunchers) {
  EXPECT_EQ(ReadRunId("TORCHELASTIC_RUN_ID=x\0LULL_RUN_ID=night\0"s), "given:night");
  EXPECT_EQ(GivenRunId("night"), "given:night");
  EXPECT_EQ(GivenRunId(""), "");
}

TEST(RunId, IsNothingWhereNothingTellsRunsApart) {
  EXPECT_EQ(ReadRunId(""), "");
  EXPECT_EQ(ReadRunId("TORCHELASTIC_RUN_ID=none\0RANK=0\0"s), "");
  EXPECT_EQ(ReadRunId("TORCHELASTIC_RUN_ID=\0"s), "");
  // The script of sbatch, which is no step.
  EXPECT_EQ(ReadRunId("SLURM_JOB_ID=9\0SLURM_PROCID=0\0SLURM_NTASKS=4\0"s), "");
  // That torchrun has no name for it leaves the step around it.
  EXPECT_EQ(ReadRunId("TORCHELASTIC_RUN_ID=none\0SLURM_JOB_ID=9\0SLURM_STEP_ID=1\0"s),
            "slurm:.9.1");
}

TEST(RunId, IsWhereRanksMeetIfNobodyNamesTheRun) {
  const std::string there = "MASTER_ADDR=train-master-0\0MASTER_PORT=23456\0"s;
  const std::string rank = "RANK=3\0WORLD_SIZE=4\0"s;
  EXPECT_EQ(ReadRunId(there + rank), "master:train-master-0:23456");
  EXPECT_EQ(ReadRunId(there + rank + "TORCHELASTIC_RUN_ID=none\0"s),
            "master:train-master-0:23456");
  EXPECT_EQ(ReadRunId(there + rank + "TORCHELASTIC_RUN_ID=seven\0"s), "torchrun:seven");
  EXPECT_EQ(ReadRunId(there), "") << "no rank";
  // The tasks of an array, say, with an address from everybody's profile.
  EXPECT_EQ(ReadRunId(there + "RANK=3\0"s), "") << "nobody says of how many";
  EXPECT_EQ(ReadRunId(there + "RANK=3\0WORLD_SIZE=2\0"s), "");
  EXPECT_EQ(ReadRunId(there + "RANK=0\0WORLD_SIZE=1\0"s), "");
  EXPECT_EQ(ReadRunId(rank + "MASTER_ADDR=train-master-0\0"s), "");
  for (const char* here : {"localhost", "127.0.0.1", "::1", "0.0.0.0", "Localhost"}) {
    EXPECT_EQ(ReadRunId(rank + "MASTER_PORT=1\0MASTER_ADDR="s + here + "\0"s), "")
        << here;
  }
}

TEST(RunId, IsShortAndText) {
  EXPECT_LT(ReadRunId("LULL_RUN_ID="s + std::string(100'000, 'x') + "\0"s).size(),
            300u);
  EXPECT_EQ(ReadRunId("LULL_RUN_ID=a\xff\0"s), "given:a\xef\xbf\xbd");
}

}  // namespace
}  // namespace lull
