#!/usr/bin/env python3
"""Programs with one known trouble each, on the simulated device under `lull run`: the
verdict, the cause and the line that lull gives are those, and its figures are those of
the ground truth."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

import contract
import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tests", "sim"),
                os.path.join(ROOT, "tools", "demo_job")]
import checks
import expected
import truth

SIM = os.environ["LULL_SIM"]
TORCH_PYTHON = os.environ.get("LULL_TEST_TORCH_PYTHON", "/usr/bin/python3")
SIMULATION = "kernel_us.long_kernel=400;kernel_us.short_kernel=4"


class Run:
    """One pattern under lull, with what really happened."""

    def __init__(self, host, pattern, *arguments, python=sys.executable, prefix=(),
                 gpu="continuous", options=(), attempt=0, **environment):
        self.name = "-".join((pattern, *arguments, gpu, str(attempt), *environment))
        with tempfile.TemporaryDirectory(prefix="lull-scenario-") as folder:
            log = os.path.join(folder, "truth")
            self.done = guest.execute(
                [guest.LULL, "run", "--quiet", "--gpu", gpu, *options, "--name", self.name,
                 "--",
                 *prefix, python, os.path.join(PUPPETS, "patterns.py"), pattern, *arguments],
                {**host.environment, "LD_LIBRARY_PATH": SIM, "LULL_SIM_LOG": log,
                 "LULL_SIM_CONFIG": SIMULATION, **environment})
            if self.done.status != 0:
                raise AssertionError(self.done.stderr)
            self.known = json.loads(self.done.stdout)
            self.truth = truth.load(log)

    def query(self, verb, *options):
        return checks.query(guest.LULL, verb, self.name, *options)

    def causes(self):
        return {row["cause"]: row for row in self.query("gaps")["causes"]}

    def report(self):
        return self.query("report")


def breakdown(run, steps):
    """What the steps were spent on, in ms, by the first of these at each moment."""
    def spans(records):
        return [(record.start, record.end) for record in records]

    parts = {"kernel": spans(run.truth.ops("kernel")),
             "memcpy": spans(run.truth.ops("copy")),
             "runtime": spans(run.truth.calls()),
             "data": run.known["waits"]}
    result = dict.fromkeys(parts, 0)
    for begin, end in steps:
        covered, before = [], 0
        for part, all_spans in parts.items():
            covered += [(max(a, begin), min(b, end)) for a, b in all_spans
                        if a < end and b > begin]
            length = union_length(covered)
            result[part] += (length - before) / 1e6
            before = length
    return result


def union_length(spans):
    total, reach = 0, 0
    for a, b in sorted(spans):
        total += max(0, b - max(a, reach))
        reach = max(reach, b)
    return total


def line(site):
    return expected.site("patterns.py", site)


class Patterns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def check_against_truth(self, run):
        """Operations equal in number; the busy time is theirs."""
        gpu = run.query("gaps")["gpu"]
        self.assertIsNone(gpu["missing"])
        self.assertEqual(gpu["late_operations"], 0)
        self.assertEqual(gpu["kernels"], len(run.truth.ops("kernel")))
        self.assertEqual(gpu["copies"], len(run.truth.ops("copy")))
        busy = run.truth.busy() / 1e6
        self.assertAlmostEqual(gpu["busy_ms"], busy, delta=0.001 * busy)
        self.assertAlmostEqual(gpu["busy_ms"] + gpu["idle_ms"], gpu["traced_ms"], delta=1e-3)
        return gpu

    def undisturbed(self, pattern):
        """A run that had its processor. What is told of the others is true, too, but of a
        thread without a processor the GPU waits for just that."""
        for attempt in range(15):
            run = Run(self.host, pattern, attempt=attempt)
            gpu = self.check_against_truth(run)
            if run.known["delayed_ms"] < 0.03 * gpu["traced_ms"]:
                return run, gpu
        self.skipTest(f"too many others on this machine: {pattern} lacked a processor 15 times")

    def test_a_device_that_is_never_idle_is_compute_bound(self):
        run, gpu = self.undisturbed("compute")
        self.assertEqual(gpu["verdict"], "compute", run.causes())

    def test_kernels_shorter_than_their_launches_are_launch_bound(self):
        run, gpu = self.undisturbed("launch")
        self.assertEqual(gpu["verdict"], "launch", run.causes())

    def test_host_and_device_taking_turns_is_sync_bound(self):
        run, gpu = self.undisturbed("sync")
        self.assertEqual(gpu["verdict"], "sync", run.causes())
        worst = run.query("syncs")["sync_points"][0]
        self.assertGreater(worst["wasted_ms"], 0.5 * gpu["idle_ms"])

    def test_a_slow_loader_is_data_bound_and_the_advice_names_it(self):
        if subprocess.run([TORCH_PYTHON, "-c", "import torch"],
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest(f"{TORCH_PYTHON} has no PyTorch")
        run = Run(self.host, "data", python=TORCH_PYTHON)
        gpu = self.check_against_truth(run)
        self.assertEqual(gpu["verdict"], "data", run.causes())
        gaps = [row for row in run.query("gaps")["gaps"] if row["cause"] == "data"]
        self.assertEqual(gaps[0]["culprit"]["line"], line("loader"))
        advice = json.dumps(run.report()["summary"]["advice"][0])
        self.assertIn("num_workers", advice)
        self.check_steps(run)

    def test_regions_tell_what_the_gpu_did_in_them(self):
        if subprocess.run([TORCH_PYTHON, "-c", "import torch"],
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest(f"{TORCH_PYTHON} has no PyTorch")
        run = Run(self.host, "regions", python=TORCH_PYTHON)
        self.check_against_truth(run)
        regions = run.query("regions")
        contract.check(self, "traced regions", regions)
        rows = {row["name"]: row for row in regions["regions"]}
        busy = [(op.start, op.end) for kind in ("kernel", "copy", "memset")
                for op in run.truth.ops(kind)]

        def busy_in(spans):
            return sum(union_length([(max(a, start), min(b, end)) for a, b in busy
                                     if a < end and b > start]) for start, end in spans)

        self.assertEqual(rows["forward"]["path"], ["step"])
        for name, spans in run.known["spans"].items():
            row = rows[name]
            self.assertEqual(row["count"], len(spans))
            within = [(start, end) for _, start, end, _ in spans]
            around = [(before, after) for before, _, _, after in spans]
            self.assertGreaterEqual(row["total_ms"] * 1e6 + 1, union_length(within))
            self.assertLessEqual(row["total_ms"] * 1e6 - 1, union_length(around))
            # Tracing ends with the last operation, the last region a little later.
            self.assertLessEqual(row["traced_ms"], row["total_ms"] + 1e-3)
            self.assertGreater(row["traced_ms"], row["total_ms"] - 1)
            self.assertGreaterEqual(row["gpu_busy_ms"] * 1e6, 0.998 * busy_in(within))
            self.assertLessEqual(row["gpu_busy_ms"] * 1e6, 1.002 * busy_in(around) + 1000)
            idle = sum(cause["total_ms"] for cause in row["causes"])
            self.assertAlmostEqual(row["gpu_busy_ms"] + idle, row["traced_ms"], delta=1e-3)
        load = rows["load"]
        data = next(c["total_ms"] for c in load["causes"] if c["cause"] == "data")
        self.assertGreater(data, 0.95 * (load["traced_ms"] - load["gpu_busy_ms"]))
        self.assertLess(load["gpu_busy_ms"], 0.1 * load["traced_ms"])
        # The line that asks for a batch, or, where it was sampled, the one that makes it.
        gaps = [row for row in run.query("gaps")["gaps"] if row["cause"] == "data"]
        self.assertIn(gaps[0]["culprit"]["line"], (line("region_loader"), line("decode")))

    def check_steps(self, run):
        """Each part of the steps is what the log of the device and the program say."""
        told = run.query("steps")
        self.assertEqual(told["source"], "period")
        # The first 4096 calls were needed to know the period; the last step never ends.
        uploads = run.known["uploads"]
        steps = told["steps"]
        self.assertGreater(len(steps), 0.25 * len(uploads))
        spans = list(zip(uploads, uploads[1:]))[-len(steps):]
        total = sum(step["duration_ms"] for step in steps)
        self.assertAlmostEqual(total, (spans[-1][1] - spans[0][0]) / 1e6,
                               delta=0.001 * total)
        expected = breakdown(run, spans)
        # next() waits for most of its time. The rest is the interpreter, which is slow on
        # a machine that is busy.
        least = {**expected,
                 "data": expected["data"] - sum(run.known["running"][-len(steps):]) / 1e6}
        for part, ms in expected.items():
            found = sum(step[f"{part}_ms"] for step in steps)
            delta = 0.01 * ms + 0.001 * total
            self.assertLessEqual(found, ms + delta, part)
            self.assertGreaterEqual(found, least[part] - delta, part)
        self.assertTrue(all(step["traced"] for step in steps))
        self.assertAlmostEqual(told["gpu_utilization_percent"],
                               100 * expected["kernel"] / total,
                               delta=0.01 * told["gpu_utilization_percent"])

    def test_a_forced_collection_shows_up_with_its_line(self):
        run = Run(self.host, "garbage")
        self.check_against_truth(run)
        gaps = [row for row in run.query("gaps")["gaps"] if row["cause"] == "gc"]
        forced = [row for row in gaps if row["culprit"]["line"] == line("collect")]
        # The device is busy for at most 0.4 ms of each pause.
        self.assertGreater(sum(row["total_ms"] for row in forced), 0.9 * run.known["gc_ms"])
        self.assertEqual(gaps[0], forced[0])  # the interpreter's own are short

    def test_a_crowded_processor_shows_up_as_run_queue_delay(self):
        crowd = [subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c",
                                   "while True: pass"]) for _ in range(3)]
        try:
            run = Run(self.host, "launch", "40", prefix=("taskset", "-c", "0"))
        finally:
            for process in crowd:
                process.kill()
                process.wait()
        self.check_against_truth(run)
        causes = run.causes()
        self.assertIn("run_queue", causes)
        idle = sum(row["total_ms"] for row in causes.values())
        self.assertGreater(causes["run_queue"]["total_ms"], 0.2 * idle, causes)
        process = max(run.report()["processes"], key=lambda row: row["launches"])
        self.assertGreater(process["preemptions"], 0)
        # The program's own figure has the start of the interpreter in it.
        self.assertLessEqual(process["run_delay_ms"], run.known["delayed_ms"] + 60)
        self.assertGreater(process["run_delay_ms"], 0.3 * run.known["delayed_ms"])

    def steps_around_windows(self, attempt):
        """(before the first window, within one, after one): what a step takes, in ns."""
        run = Run(self.host, "launch", "600", gpu="window", attempt=attempt,
                  options=("--schedule", "wait=200ms,warmup=50ms,active=200ms",
                           "--overhead-budget", "100"))
        gpu = run.query("gaps")["gpu"]
        self.assertGreaterEqual(gpu["windows"], 2)
        start = self.host.start_ns(run.name)
        windows = [(start + 1e6 * span["start_ms"],
                    start + 1e6 * (span["start_ms"] + span["duration_ms"]))
                   for span in gpu["spans"]]
        took = {"before": [], "within": [], "after": []}
        for begin, end in run.known["steps"]:
            if any(begin < b and end > a for a, b in windows):
                took["within"].append(end - begin)
            else:
                took["before" if end < windows[0][0] else "after"].append(end - begin)
        # Of the undisturbed tenth: others may run on this machine.
        return [statistics.quantiles(took[when], n=10)[0]
                for when in ("before", "within", "after")]

    def test_after_a_window_the_job_is_as_fast_as_before(self):
        for attempt in range(4):  # a processor may change its clock in the middle
            before, within, after = self.steps_around_windows(attempt)
            print(f"a step takes {before / 1e3:.0f} us, {within / 1e3:.0f} in a window, "
                  f"{after / 1e3:.0f} after it", file=sys.stderr)
            if within > 1.1 * after and after < 1.05 * before:
                return
        self.fail("never as fast after a window as before the first")

    def test_without_gpu_truth_nothing_is_guessed(self):
        self.check_nothing_is_guessed(Run(self.host, "sync", gpu="host"), "--gpu")

    def test_a_cupti_that_is_too_old_is_named(self):
        run = Run(self.host, "sync", LULL_SIM_CUPTI_VERSION="11")
        self.check_nothing_is_guessed(run, "too old")

    def test_a_cupti_that_refuses_is_named_with_its_result(self):
        run = Run(self.host, "sync", LULL_SIM_CUPTI_FAIL="cuptiActivityEnable:3:999")
        self.check_nothing_is_guessed(run, "999")

    def test_garbage_records_are_counted_and_leave_idle_time_unknown(self):
        gpu = Run(self.host, "sync", LULL_SIM_CUPTI_GARBAGE="50").query("gaps")["gpu"]
        self.assertGreater(gpu["records_bad"], 0)
        self.assertGreater(gpu["unknown_ms"], 0)
        self.assertAlmostEqual(gpu["busy_ms"] + gpu["idle_ms"], gpu["traced_ms"], delta=1e-3)

    def test_a_clock_that_is_exchanged_under_our_feet_is_not_believed(self):
        # Seen by CUPTI alone, so to us it is another tool's timestamp callback.
        # Long enough that it happens within the run on a fast machine, too.
        run = Run(self.host, "sync", "150",
                  LULL_SIM_CUPTI_CLOCK_STEP_NS="7000000000@0.3")
        gpu = run.query("gaps")["gpu"]
        self.assertLessEqual(gpu["busy_ms"], run.truth.busy() / 1e6)
        if "foreign_clock" in [span["reason"] for span in gpu["spans"]]:
            self.assertGreater(gpu["yielded_ms"], 0)
        else:
            # On a slow machine the clock was read twice after it jumped before anybody asked:
            # by then it is known how it runs.
            self.assertGreater(gpu["busy_ms"], 0.98 * run.truth.busy() / 1e6)

    def check_nothing_is_guessed(self, run, why):
        answer = run.query("gaps")
        self.assertIn(why, answer["gpu"]["missing"])
        self.assertIsNone(answer["gpu"]["verdict"])
        self.assertIsNone(answer["gpu"]["busy_ms"])
        self.assertEqual(answer["gaps"], [])
        for row in run.query("syncs")["sync_points"]:
            self.assertIsNone(row["wasted_ms"])
            self.assertIsNone(row["needed_ms"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
