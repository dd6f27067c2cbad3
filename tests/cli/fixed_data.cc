// Data loading of the made-up job: three workers, and a validation without any.
#include "tests/cli/fixed_replies.h"
#include "tests/daemon/units.h"

namespace lull::testing {
namespace {

void SetPercent(v1::SampledShare* share, double percent, double half) {
  share->set_percent(percent);
  share->set_low_percent(percent - half);
  share->set_high_percent(percent + half);
}

void AddPart(google::protobuf::RepeatedPtrField<v1::LoaderPartRow>* rows,
             v1::LoaderPart part, uint64_t samples, uint64_t ms, double percent) {
  v1::LoaderPartRow* row = rows->Add();
  row->set_part(part);
  row->set_samples(samples);
  row->set_time_ns(ms * kMs);
  SetPercent(row->mutable_share(), percent, 1.5);
}

v1::LoaderLine* AddLine(v1::DataLoading* data, v1::HostSampleRole role,
                        const char* function, const char* file, int number,
                        uint64_t samples, uint64_t ms) {
  v1::LoaderLine* line = data->add_lines();
  line->set_role(role);
  line->mutable_site()->set_function(function);
  line->mutable_site()->set_file(file);
  line->mutable_site()->set_line(number);
  line->set_samples(samples);
  line->set_total_ns(ms * kMs);
  return line;
}

}  // namespace

v1::ReportReply FixedData() {
  v1::ReportReply reply = FixedWaits();
  reply.clear_waits();
  v1::DataLoading* data = reply.mutable_data();
  v1::LoaderRow* loader = data->add_loaders();
  loader->set_loader("_MultiProcessingDataLoaderIter");
  loader->mutable_site()->set_function("train");
  loader->mutable_site()->set_file("train.py");
  loader->mutable_site()->set_line(44);
  loader->set_calls(1200);
  loader->set_total_ns(27'600 * kMs);
  loader->set_max_ns(400 * kMs);
  loader->set_blocked_ns(27'000 * kMs);
  data->set_batches(1200);
  data->set_own_batches(10);

  v1::LoaderWorkers* workers = data->mutable_workers();
  workers->set_workers(6);
  workers->set_owners(2);
  workers->set_samples(3600);
  workers->set_time_ns(360'000 * kMs);
  workers->set_waiting_ns(21'600 * kMs);
  workers->set_ready_ns(5'000 * kMs);
  SetPercent(workers->mutable_busy(), 94, 0.8);
  AddPart(workers->mutable_parts(), v1::LOADER_PART_DATA_SET, 3100, 310'000, 91.6);
  AddPart(workers->mutable_parts(), v1::LOADER_PART_TRANSFER, 284, 28'400, 8.4);
  v1::BusyWorkers* busy = workers->add_over_time();
  busy->set_end_ns(16'000 * kMs);
  busy->set_workers(6);
  busy->set_busy(5.6);
  workers->set_busy_mean(5.64);
  workers->set_busy_95(5.9);
  workers->set_enough(5.2);
  workers->set_enough_low(5.1);
  workers->set_enough_high(5.3);
  AddPart(data->mutable_parts(), v1::LOADER_PART_DATA_SET, 40, 400, 100);

  v1::LoaderLine* line = AddLine(data, v1::HOST_SAMPLE_ROLE_LOADER, "Faces.__getitem__",
                                 "/home/ada/resnet/dataset.py", 44, 3100, 310'000);
  line->set_own_samples(3000);
  line->set_own_ns(300'000 * kMs);
  SetPercent(line->mutable_total(), 91.6, 1);
  SetPercent(line->mutable_own(), 88.6, 1);
  line->mutable_callee()->set_function("Image.resize");
  line->mutable_callee()->set_file("/venv/lib/python3.11/site-packages/PIL/Image.py");
  line->mutable_callee()->set_line(2365);
  line =
      AddLine(data, v1::HOST_SAMPLE_ROLE_LOADER, "reduce_storage",
              "/venv/lib/python3.11/site-packages/torch/multiprocessing/reductions.py",
              620, 284, 28'400);
  line->set_part(v1::LOADER_PART_TRANSFER);
  line->set_own_samples(284);
  line->set_own_ns(28'400 * kMs);
  SetPercent(line->mutable_total(), 8.4, 0.9);
  SetPercent(line->mutable_own(), 8.4, 0.9);
  line = AddLine(data, v1::HOST_SAMPLE_ROLE_MAIN, "Faces.__getitem__",
                 "/home/ada/resnet/dataset.py", 51, 12, 120);
  return reply;
}

}  // namespace lull::testing
