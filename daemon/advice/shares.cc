#include <algorithm>

#include "daemon/advice/advice.h"
#include "daemon/words/facts.h"

namespace lull {

v1::Shares SharesOf(const v1::ReportReply& reply) {
  auto works = [](const v1::ProcessRow& row) { return row.gpu() || row.torch(); };
  bool any = std::any_of(reply.processes().begin(), reply.processes().end(), works);
  v1::Shares shares;
  for (const v1::ProcessRow& row : reply.processes()) {
    if (any && !works(row)) continue;
    shares.set_working_ns(shares.working_ns() + RecordedNs(row));
    shares.set_blocked_ns(shares.blocked_ns() + row.blocked_ns());
    shares.set_data_wait_ns(shares.data_wait_ns() + row.data_wait_ns());
    shares.set_gc_ns(shares.gc_ns() + row.gc_ns());
    shares.set_working_processes(shares.working_processes() + 1);
  }
  return shares;
}

}  // namespace lull
