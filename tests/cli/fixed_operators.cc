// Operators of the made-up job.
#include "tests/cli/fixed_replies.h"

namespace lull::testing {
namespace {

v1::OperatorRow* AddOperator(v1::ReportReply& reply, const char* name,
                             v1::OperatorPass pass, uint64_t launches, uint64_t own_us,
                             uint64_t total_us) {
  v1::OperatorRow* row = reply.mutable_operators()->add_operators();
  row->set_name(name);
  row->set_pass(pass);
  row->set_launches(launches);
  row->set_own_launches(own_us > 0 ? launches : 0);
  row->set_own_gpu_ns(own_us * 1000);
  row->set_gpu_ns(total_us * 1000);
  return row;
}

}  // namespace

v1::ReportReply FixedOperators() {
  v1::ReportReply reply = FixedKernels();
  reply.clear_kernels();
  v1::OperatorRow* addmm = AddOperator(reply, "aten::addmm", v1::OPERATOR_PASS_FORWARD,
                                       1200, 2'400'000, 2'400'000);
  addmm->mutable_site()->set_file("model.py");
  addmm->mutable_site()->set_line(47);
  addmm->mutable_site()->set_function("Model.forward");
  addmm->set_allocations(1200);
  addmm->set_allocated_bytes(3ULL << 30);
  AddOperator(reply, "aten::mm", v1::OPERATOR_PASS_BACKWARD, 2400, 2'000'000,
              2'000'000);
  AddOperator(reply, "aten::_foreach_add_", v1::OPERATOR_PASS_OPTIMIZER, 360, 400'000,
              400'000);
  AddOperator(reply, "AddmmBackward0", v1::OPERATOR_PASS_BACKWARD, 2400, 0, 2'000'000);
  v1::Operators* operators = reply.mutable_operators();
  operators->set_gpu_ns(5'000'000'000);
  operators->set_launches(4'060);
  operators->set_unknown_gpu_ns(200'000'000);
  operators->set_unknown_launches(100);
  operators->set_allocated_bytes(4ULL << 30);
  operators->set_known_bytes(3ULL << 30);
  operators->set_rows(4);
  return reply;
}

}  // namespace lull::testing
