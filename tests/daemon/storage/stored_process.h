// What owns the rows of a test: a job with one process.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "daemon/storage/store.h"

namespace lull::test {

// Stores both, in the transaction that has begun.
inline storage::ProcessRow StoreProcess(storage::StoreWriter& writer) {
  storage::JobRow job;
  job.info.set_id(std::string(32, 'a'));
  EXPECT_TRUE(writer.catalogue().PutJob(job).ok());
  storage::ProcessRow process;
  process.job = job.id;
  process.info.set_key(1);
  EXPECT_TRUE(writer.catalogue().PutProcess(process).ok());
  return process;
}

}  // namespace lull::test
