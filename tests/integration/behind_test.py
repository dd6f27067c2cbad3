#!/usr/bin/env python3
"""A device that is behind the host: launches queue up, as in most programs that keep a GPU
busy. Windows of tracing begin in the middle of that, and must not take work that they did
not see for idle time."""

import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tools", "demo_job"),
                os.path.join(ROOT, "tests", "puppets"), os.path.join(ROOT, "tests", "sim")]
import checks
import guest
import stepping
import truth

PUPPETS = os.path.join(ROOT, "tests", "puppets")
# Of 100 kernels: 30 ms a step, of which the host needs about one to launch them. The queue
# takes 1,024 launches, so that the device is ten steps behind; a window has six.
KERNEL_US = 300
STEPS = 200


class Behind(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def report(self, name, *options, program=("stepping.py",), more=(), config="", log=None,
               steps=STEPS):
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", name, "--step-range", "step",
             "--overhead-budget", "100", *options, "--", sys.executable,
             os.path.join(PUPPETS, program[0]), *program[1:], str(steps), *more],
            {**self.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "LULL_SIM_CONFIG": f"kernel_us={KERNEL_US};{config}",
             **({"LULL_SIM_LOG": log} if log else {})})
        self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))
        return checks.query(guest.LULL, "report", name)

    def check_busy(self, report, verdict="compute"):
        gpu = report["gpu"]
        self.assertGreater(gpu["traced_ms"], 0, gpu)
        # Not all: a machine that is taken may keep the host from launching.
        self.assertGreater(gpu["busy_ms"], 0.9 * gpu["traced_ms"], gpu)
        self.assertLess(gpu["unknown_ms"], 0.01 * gpu["traced_ms"], gpu)
        self.assertEqual(gpu["verdict"], verdict, gpu)
        # What was still queued when a window ended came later.
        self.assertEqual((gpu["records_bad"], gpu["records_lost"], gpu["cupti_dropped"]),
                         (0, 0, 0), gpu)

    def active_windows(self, report):
        return {span["start_ms"]: span for span in report["gpu"]["spans"]
                if span["state"] == "active"}

    def test_windows_of_steps_wait_until_the_device_has_come_to_them(self):
        report = self.report("steps")
        self.check_busy(report)
        windows = self.active_windows(report)
        # Without waiting one begins every 26 steps; ten more are waited for.
        self.assertGreaterEqual(len(windows), STEPS // 45, windows)
        # Each has its five active steps all the same.
        step_ms = stepping.LAUNCHES * KERNEL_US / 1000
        for window in list(windows.values())[:-1]:
            self.assertGreater(window["duration_ms"], 0.8 * 5 * step_ms, window)

    def test_a_side_stream_that_is_not_behind_does_not_end_the_wait(self):
        for schedule in (), ("--schedule", "wait=500ms,warmup=100ms,active=600ms"):
            with self.subTest(schedule=schedule):
                self.check_busy(self.report(f"side{len(schedule)}", *schedule,
                                            program=("queues.py", "side")))

    def test_a_device_that_is_not_behind_does_not_end_the_wait_for_another(self):
        gpu = self.report("devices", program=("queues.py", "devices"),
                          config="devices=2;kernel_us.other=10")["gpu"]
        # The time of both. One works all the time, the other 10 us in each step.
        self.assertGreater(gpu["busy_ms"], 0.9 * gpu["traced_ms"] / 2, gpu)
        self.assertLess(gpu["busy_ms"], 0.51 * gpu["traced_ms"], gpu)
        self.assertLess(gpu["unknown_ms"], 0.01 * gpu["traced_ms"], gpu)

    def test_a_program_that_only_copies_has_windows_too(self):
        self.check_busy(self.report("copies", program=("queues.py", "copies"),
                                    config="data=0"), "copy")

    def test_a_kernel_that_outlasts_its_window_and_all_patience_is_not_idle_time(self):
        # In the second of five active steps. Nobody waits for it before the end.
        for program, seconds, windows in ("long", 6, 1), ("long", 12, 0), ("graph", 6, 1):
            with self.subTest(program=program, seconds=seconds), tempfile.TemporaryDirectory() as folder:
                log = os.path.join(folder, "truth")
                name = f"{program}{seconds}"
                gpu = self.report(
                    name, "--schedule", f"skip_first=5,wait=20,warmup=1,active=5,repeat={windows}",
                    program=("queues.py", program), more=("27",), log=log,
                    config=f"kernel_us=100;kernel_us.other={seconds * 1000000}")["gpu"]
                idle = self.true_idle_ms(name, gpu, truth.load(log))
                self.assertGreater(gpu["traced_ms"], 80, gpu)
                self.assertLess(gpu["idle_ms"] - gpu["unknown_ms"], idle + 2, gpu)
                self.assertLess(gpu["busy_ms"] + idle, gpu["traced_ms"] + 2, gpu)

    def true_idle_ms(self, name, gpu, log):
        """Of active time."""
        start, idle = self.host.start_ns(name), 0
        for span in self.active_windows({"gpu": gpu}).values():
            at = start + span["start_ms"] * 1e6
            end = at + span["duration_ms"] * 1e6
            for op in sorted(log.ops("kernel"), key=lambda op: op.start):
                idle += max(0, min(op.start, end) - at)
                at = max(at, min(op.end, end))
            idle += end - at
        return idle / 1e6

    def test_windows_by_the_clock_count_from_when_it_has_come_to_them(self):
        report = self.report("clock", "--schedule", "wait=500ms,warmup=100ms,active=600ms")
        self.check_busy(report)

    def test_windows_by_the_clock_go_on_for_as_long_as_they_waited(self):
        # The device is 2 s behind; two windows of the clock would pass in that. The relay,
        # which looks every 50 ms, may end one by so much too early.
        report = self.report("late", "--schedule", "wait=300ms,warmup=100ms,active=600ms,repeat=1",
                             config="kernel_us=4000;queue_depth=512", steps=20)
        self.check_busy(report)
        (window,) = self.active_windows(report).values()
        self.assertGreater(window["duration_ms"], 0.9 * 600, report["gpu"])
        self.assertLess(window["duration_ms"], 2 * 600, report["gpu"])

    def test_a_device_that_is_not_behind_is_not_waited_for(self):
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", "ahead", "--step-range", "step",
             "--overhead-budget", "100", "--", sys.executable,
             os.path.join(PUPPETS, "stepping.py"), "265"],
            {**self.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "LULL_SIM_CONFIG": "kernel_us=1"})
        self.assertEqual(done.status, 0, done.stderr)
        report = checks.query(guest.LULL, "report", "ahead")
        # Five steps are skipped, and every 26 a window begins. One or another may find a
        # device that is late by a step where the machine is taken.
        self.assertGreaterEqual(len(self.active_windows(report)), 9)
        self.assertLess(report["gpu"]["unknown_ms"], 0.05 * report["gpu"]["traced_ms"])


if __name__ == "__main__":
    unittest.main()
