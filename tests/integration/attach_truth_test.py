#!/usr/bin/env python3
"""What `lull attach` reports is what happened between its marks, by the ground truth of the
simulated device."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import attach_test
import guest
from attach_test import BUILT, GUESTS, WORK
from attach_test import setUpModule  # unittest calls it
from guest import wait_until

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "puppets"), os.path.join(TESTS, "sim")]
import expected
import truth

EDGES = 2  # calls under way when the recording began or ended


class Truthful(attach_test.Case):
    def test_reports_what_happened_between_its_marks(self):
        self.start([os.path.join(BUILT, "steady_host13"), self.alive],
                   LULL_SIM_LOG=self.log)
        time.sleep(0.5)
        self.attach("--for", "3s", "--name", "seen", "--overhead-budget", "100", "--quiet")
        time.sleep(0.3)
        self.assertEqual(self.outcome().status, 7)
        syncs = self.answer("syncs", "seen", "--top", "100")
        log = truth.load(self.log)
        start = self.host.start_ns("seen")
        self.assertTrue(syncs["job"]["attached"])
        self.assertIsNone(syncs["job"]["exit_status"])
        (span,) = syncs["job"]["recorded"]
        since, until = (start + span[end] * 1e6 for end in ("start_ms", "end_ms"))
        calls = {}
        for record in log.calls():
            if record.start >= since and record.end <= until:
                calls.setdefault(record.name, []).append(record.end - record.start)
        for name, line in (("cudaStreamSynchronize", "steady_sync"),
                           ("cudaMemcpyAsync", "steady_copy")):
            rows = [row for row in syncs["sync_points"] if row["api"] == name]
            self.assertEqual(len(rows), 1, rows)
            self.assertEqual(rows[0]["site"]["line"], expected.site("steady.cu", line))
            self.assertIn("step", rows[0]["site"]["function"])
            self.assertLessEqual(abs(len(calls[name]) - rows[0]["calls"]), EDGES)
            # Without the longest: between lull's clock and the device's the thread may
            # have lost its processor.
            took = sorted(calls[name])[:-1]
            mean = sum(took) / len(took) / 1e6
            self.assertAlmostEqual(
                (rows[0]["blocked_ms"] - rows[0]["max_ms"]) / (rows[0]["calls"] - 1), mean,
                delta=0.02 * mean + 0.001)

    def test_lines_of_python_appear(self):
        self.start([sys.executable, os.path.join(GUESTS, "attached_script.py"), self.alive,
                    WORK])
        self.assertEqual(self.job.stdout.readline(), b"training\n")
        self.attach("--for", "1s", "--name", "seen", "--overhead-budget", "100", "--quiet")
        self.outcome()
        syncs = self.answer("syncs", "seen")
        top = syncs["sync_points"][0]
        self.assertEqual(os.path.basename(top["site"]["file"]), "attached_script.py")
        with open(top["site"]["file"]) as file:
            self.assertIn("library.work_step", file.readlines()[top["site"]["line"] - 1])
        pauses = self.answer("gc", "seen")["gc_pauses"]
        self.assertGreater(sum(row["count"] for row in pauses), 0)

    def test_gpu_truth_appears_and_goes(self):
        self.start([os.path.join(BUILT, "steady_host13"), self.alive])
        time.sleep(0.3)
        self.attach("--for", "2s", "--gpu", "continuous", "--name", "seen", "--quiet")
        gaps = self.answer("gaps", "seen")
        self.assertGreater(gaps["gpu"]["traced_ms"], 1000)
        self.assertGreater(gaps["gpu"]["idle_ms"], 100)
        self.assertEqual(self.outcome().status, 7)

    def test_cupti_stays_up_where_lull_came_late(self):
        # It may have missed other users. CUPTI leaves 2 ms in each launch until it is down.
        self.start([os.path.join(BUILT, "steady_host13"), self.alive, "2000", "device"],
                   LULL_SIM_LOG=self.log, LULL_SIM_CONFIG="kernel_us=20;cupti_stays_ns=2000000")
        time.sleep(0.3)
        self.attach("--for", "4s", "--gpu", "window", "--schedule",
                    "skip_first=0,wait=300ms,warmup=0,active=300ms,repeat=1,finalize=1",
                    "--name", "seen", "--overhead-budget", "100", "--quiet")
        self.assertGreater(self.answer("gaps", "seen")["gpu"]["traced_ms"], 100)
        self.assertEqual(self.outcome().status, 7)
        launches = [call for call in truth.load(self.log).calls()
                    if call.name == "cudaLaunchKernel"]
        self.assertLess(launches[0].end - launches[0].start, 1_000_000)
        self.assertGreaterEqual(launches[-1].end - launches[-1].start, 2_000_000)

    def attach_with_gpu(self, name, duration="1500ms"):
        # Not before the relay of one that was killed has put the shim to sleep.
        wait_until(lambda: self.lull("attach", str(self.job.pid), "--for", duration, "--gpu",
                                     "continuous", "--name", name, "--overhead-budget", "100",
                                     "--quiet").status == 0)

    def check_kernels(self, name, log):
        """All of one attachment: each kernel, its line and what the device is like."""
        report = self.answer("kernels", name)
        self.assertEqual((report["losses"]["events_lost"], report["losses"]["corrupt_segments"]),
                         (0, 0), report["losses"])
        gpu = report["gpu"]
        self.assertEqual((gpu["devices"], gpu["records_lost"], gpu["records_bad"]), (1, 0, 0))
        # It begins with what was launched from then on: before that the device may have been
        # at work on what nobody saw.
        (span,) = (span for span in gpu["spans"] if span["state"] == "active")
        since = self.host.start_ns(name) + span["start_ms"] * 1e6
        until = since + span["duration_ms"] * 1e6
        # It begins with a kernel, by two clocks of a busy machine. Nothing ran just before.
        since -= 200_000
        true = [op for op in log.ops("kernel") if op.start >= since and op.end <= until]
        (row,) = report["kernels"]
        self.assertGreaterEqual(len(true), 4)
        self.assertLessEqual(abs(row["calls"] - len(true)), 4 * EDGES)  # a step has four
        self.assertEqual(row["site"]["line"], expected.site("steady.cu", "steady_launch"))
        self.assertIsNotNone(row["occupancy_percent"])

    def test_each_of_several_attachments_has_the_whole_gpu_truth(self):
        self.start([os.path.join(BUILT, "steady_host13"), self.alive],
                   LULL_SIM_LOG=self.log)
        time.sleep(0.3)
        names = ("first", "second", "third")
        for name in names:
            self.attach_with_gpu(name)
        self.assertEqual(self.outcome().status, 7)
        log = truth.load(self.log)
        for name in names:
            with self.subTest(name):
                self.check_kernels(name, log)

    def test_gpu_truth_begins_anew_where_a_lull_that_was_killed_left_it_on(self):
        # A step each five seconds: between two of them no call switches it off.
        self.start([os.path.join(BUILT, "steady_host13"), self.alive, "5000000"],
                   LULL_SIM_LOG=self.log)
        time.sleep(0.5)
        lull = subprocess.Popen(
            [guest.LULL, "attach", str(self.job.pid), "--gpu", "continuous", "--quiet"],
            env=self.host.environment, stderr=subprocess.DEVNULL)
        time.sleep(5)
        lull.kill()
        lull.wait()
        # A device may be behind until a round has shown that it is not: two steps.
        self.attach_with_gpu("next", "11s")
        self.assertEqual(self.outcome().status, 7)
        self.check_kernels("next", truth.load(self.log))


def relay_of(lull):
    """The worker below a `lull`."""
    with open(f"/proc/{lull}/task/{lull}/children", encoding="utf-8") as file:
        for pid in map(int, file.read().split()):
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                if b"relay-worker" in line.read().split(b"\0"):
                    return pid
    raise AssertionError("it has no relay")


@unittest.skipUnless(os.environ.get("LULL_LONG"), "takes minutes; LULL_LONG=1")
class NobodyReads(attach_test.Case):
    """For a minute: the process is asleep then, and whoever comes can have it."""

    def start_steady(self):
        self.start([os.path.join(BUILT, "steady_host13"), self.alive])
        time.sleep(0.5)

    def obstacles(self):
        done = self.lull("ps", str(self.job.pid), "--json")
        return [one["id"] for one in json.loads(done.stdout)["process"]["obstacles"]]

    def test_since_lull_and_its_relay_were_killed(self):
        self.start_steady()
        lull = subprocess.Popen([guest.LULL, "attach", str(self.job.pid), "--quiet"],
                                env=self.host.environment, stderr=subprocess.DEVNULL)
        wait_until(lambda: "already_attached" in self.obstacles())
        time.sleep(1)
        relay = relay_of(lull.pid)
        lull.send_signal(signal.SIGSTOP)  # so that it starts no other
        os.kill(relay, signal.SIGKILL)
        lull.kill()
        lull.wait()
        self.assertEqual(self.obstacles(), ["already_attached"])
        wait_until(lambda: not self.obstacles(), seconds=150)
        self.attach("--for", "1s", "--name", "next", "--quiet")
        self.assertGreater(len(self.answer("syncs", "next")["sync_points"]), 0)
        self.assertEqual(self.outcome().status, 7)

    def test_since_the_relay_was_stopped_and_goes_on_where_it_does(self):
        self.start_steady()
        lull = subprocess.Popen(
            [guest.LULL, "attach", str(self.job.pid), "--quiet", "--name", "stopped"],
            env=self.host.environment, stderr=subprocess.DEVNULL)
        wait_until(lambda: "already_attached" in self.obstacles())
        time.sleep(1)
        relay = relay_of(lull.pid)
        os.kill(relay, signal.SIGSTOP)
        wait_until(lambda: not self.obstacles(), seconds=150)
        os.kill(relay, signal.SIGCONT)
        wait_until(lambda: "already_attached" in self.obstacles())
        stored = self.answer("report", "stopped")["losses"]["events_stored"]
        wait_until(lambda: self.answer("report", "stopped")["losses"]["events_stored"] >
                   stored + 1000)
        lull.send_signal(signal.SIGINT)
        self.assertEqual(lull.wait(), 0)
        report = self.answer("report", "stopped")
        self.assertEqual(report["losses"]["processes_unread"], 1)
        text = self.lull("report", "stopped").stdout
        self.assertNotIn("Nothing lost", text)
        self.assertIn("processes of which lull read nothing for a minute", text)
        self.assertEqual(self.outcome().status, 7)


if __name__ == "__main__":
    unittest.main(verbosity=2)
