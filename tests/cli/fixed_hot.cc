// Samples of host threads of the made-up job.
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/fixed_replies.h"
#include "tests/daemon/units.h"

namespace lull::testing {
namespace {

struct At {
  const char* function;
  const char* file;
  int line;
};
constexpr char kDataset[] = "/home/ada/resnet/dataset.py";
constexpr char kImage[] = "/venv/lib/python3.11/site-packages/PIL/Image.py";

void SetShare(v1::SampledShare* share, double percent, double low, double high) {
  share->set_percent(percent);
  share->set_low_percent(low);
  share->set_high_percent(high);
}

// Samples are 5 ms each.
v1::HotLine* AddLine(v1::Hot* hot, v1::HostSampleRole role, const At& at,
                     uint64_t samples, uint64_t self_samples) {
  v1::HotLine* line = hot->add_lines();
  line->set_role(role);
  line->mutable_site()->set_function(at.function);
  line->mutable_site()->set_file(at.file);
  line->mutable_site()->set_line(at.line);
  line->set_samples(samples);
  line->set_self_samples(self_samples);
  line->set_total_ns(samples * 5 * kMs);
  line->set_self_ns(self_samples * 5 * kMs);
  return line;
}

void AddRole(v1::Hot* hot, v1::HostSampleRole role, uint64_t samples,
             uint64_t running_ms, uint64_t ready_ms, uint64_t blocked_ms) {
  v1::HotRole* row = hot->add_roles();
  row->set_role(role);
  row->set_samples(samples);
  row->set_time_ns(samples * 5 * kMs);
  row->set_running_ns(running_ms * kMs);
  row->set_ready_ns(ready_ms * kMs);
  row->set_blocked_ns(blocked_ms * kMs);
}

void SetStack(v1::HotLine* line, const std::vector<At>& frames) {
  for (const At& at : frames) {
    v1::Frame* frame = line->add_stack();
    frame->set_function(at.function);
    frame->set_file(at.file);
    frame->set_line(at.line);
  }
}

}  // namespace

v1::ReportReply FixedHot() {
  v1::ReportReply reply = FixedWaits();
  reply.clear_waits();
  v1::Hot* hot = reply.mutable_hot();
  AddRole(hot, v1::HOST_SAMPLE_ROLE_MAIN, 12'480, 39'000, 400, 23'000);
  AddRole(hot, v1::HOST_SAMPLE_ROLE_AUTOGRAD, 12, 60, 0, 0);
  AddRole(hot, v1::HOST_SAMPLE_ROLE_LOADER, 24'960, 99'840, 12'480, 12'480);
  hot->mutable_roles(0)->set_no_python_ns(500 * kMs);
  hot->mutable_roles(0)->set_failed_ns(20 * kMs);
  hot->mutable_roles(0)->set_cut_ns(60 * kMs);

  v1::HotLine* resize = AddLine(hot, v1::HOST_SAMPLE_ROLE_LOADER,
                                {"Image.resize", kImage, 2365}, 15'475, 15'475);
  SetShare(resize->mutable_self(), 62.0, 61.4, 62.6);
  *resize->mutable_total() = resize->self();
  resize->set_running_ns(70'000 * kMs);
  resize->set_ready_ns(7'375 * kMs);
  SetStack(resize, {{"Image.resize", kImage, 2365},
                    {"Faces.__getitem__", kDataset, 44},
                    {"<module>", "/home/ada/resnet/train.py", 90}});
  v1::HotLine* wait = AddLine(
      hot, v1::HOST_SAMPLE_ROLE_MAIN,
      {"wait", "/usr/lib/python3.11/multiprocessing/connection.py", 930}, 4'600, 4'600);
  SetShare(wait->mutable_self(), 36.9, 36.0, 37.7);
  *wait->mutable_total() = wait->self();
  wait->set_blocked_ns(23'000 * kMs);
  v1::HotLine* item = AddLine(hot, v1::HOST_SAMPLE_ROLE_LOADER,
                              {"Faces.__getitem__", kDataset, 44}, 16'000, 525);
  SetShare(item->mutable_self(), 2.1, 1.94, 2.28);
  SetShare(item->mutable_total(), 64.1, 63.5, 64.7);
  item->set_running_ns(72'000 * kMs);
  item->set_ready_ns(8'000 * kMs);
  SetStack(item, {{"Faces.__getitem__", kDataset, 44}});
  item->set_cut(true);
  v1::HotLine* hook = AddLine(hot, v1::HOST_SAMPLE_ROLE_AUTOGRAD,
                              {"log_gradient", "train.py", 61}, 12, 12);
  hook->set_running_ns(60 * kMs);

  v1::HotSamples* counters = hot->mutable_counters();
  counters->set_taken(37'452);
  counters->set_exact(20'000);
  counters->set_held(17'336);
  counters->set_cut(12);
  counters->set_no_state(100);
  counters->set_failed(4);
  counters->set_late(310);
  counters->set_late_ns(900 * kMs);
  counters->set_skipped(2);
  counters->set_threads(6);
  counters->set_lowered(1);
  counters->set_self_ns(190 * kMs);
  hot->set_denied_processes(1);
  return reply;
}

void AddDoing(v1::GapRow* gap) {
  gap->set_samples(120);
  v1::DoingLine* line = gap->add_doing();
  line->set_samples(74);
  line->mutable_site()->set_file(kDataset);
  line->mutable_site()->set_line(44);
  line->mutable_site()->set_function("Faces.__getitem__");
  line->mutable_callee()->set_file(kImage);
  line->mutable_callee()->set_line(2365);
  line->mutable_callee()->set_function("Image.resize");
  SetShare(line->mutable_own(), 61.7, 52.7, 69.9);
  SetShare(line->mutable_share(), 63.3, 54.4, 71.4);
  SetShare(line->mutable_self(), 5.0, 2.3, 10.5);
  *gap->mutable_culprit() = line->site();
  line = gap->add_doing();
  line->set_samples(30);
  line->mutable_site()->set_file("train.py");
  line->mutable_site()->set_line(45);
  line->mutable_site()->set_function("train_step");
  SetShare(line->mutable_own(), 25.0, 18.1, 33.4);
  SetShare(line->mutable_share(), 88.0, 81.0, 92.6);
  SetShare(line->mutable_self(), 25.0, 18.1, 33.4);
}

}  // namespace lull::testing
