#!/usr/bin/env python3
"""Jobs that sleep: `lull run --dormant`, `lull arm`, `lull disarm`. What is reported is
what happened while the job was armed, by the ground truth of the simulated device."""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

import guest
import guest_python_test
from guest import wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tests", "sim")]
import expected
import truth

BUILT = os.environ["LULL_PUPPETS"]
SIM = os.environ["LULL_SIM"]
LULLD = os.path.join(os.path.dirname(os.path.dirname(guest.LULL)), "daemon", "collector",
                     "lulld")
if not os.path.exists(LULLD):
    LULLD = os.path.join(os.path.dirname(guest.LULL), "lulld")

# A call that was made while the relay went from one target to the next, at either end of
# a stretch, may fall on the wrong side of it.
EDGES = 2


def processes():
    """(pid, parent, arguments) of all processes."""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                arguments = file.read().decode(errors="replace").split("\0")[:-1]
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rsplit(") ", 1)[1].split()[1])
            yield int(entry), parent, arguments
        except (OSError, ValueError, IndexError):
            continue


class Case(unittest.TestCase):
    maxDiff = None
    collector = ()  # how to reach it

    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)
        self.folder = tempfile.TemporaryDirectory(prefix="lull-arm-")
        self.addCleanup(self.folder.cleanup)
        self.alive = os.path.join(self.folder.name, "alive")
        with open(self.alive, "w"):
            pass
        self.log = os.path.join(self.folder.name, "truth")

    def start(self, name, command, *options, dormant=True):
        flags = (["--dormant"] if dormant else []) + [*options, *self.collector]
        self.job = subprocess.Popen(
            [guest.LULL, "run", "--quiet", "--name", name, *flags, "--", *command],
            env={**self.host.environment, "LD_LIBRARY_PATH": SIM, "LULL_SIM_LOG": self.log,
                 "LULL_SIM_CONFIG": "kernel_us=200", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end)
        self.name = name

    def start_steady(self, name, *options, **more):
        self.start(name, [os.path.join(BUILT, "steady_host13"), self.alive], *options, **more)
        wait_until(lambda: self.row().get("processes") == 1)

    def end(self):
        """The job's outcome, once it has trained to its end."""
        if os.path.exists(self.alive):
            os.remove(self.alive)
        try:
            stdout, stderr = self.job.communicate(timeout=60)
        except ValueError:  # was here before
            return None
        return guest.Outcome(self.job.returncode, stdout.decode(), stderr.decode())

    def lull(self, *arguments):
        return guest.execute([guest.LULL, *arguments, *self.collector],
                             self.host.environment)

    def answer(self, *arguments):
        done = self.lull(*arguments, "--json")
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)

    def row(self):
        """The job in `lull jobs`, or {}."""
        jobs = self.answer("jobs")["jobs"]
        return next((job for job in jobs if job["name"] == self.name), {})

    def worker(self):
        """The pid of the job's relay worker, None between two of them."""
        return next((pid for pid, parent, arguments in processes()
                     if parent == self.job.pid and "relay-worker" in arguments), None)

    def wait_until_asleep(self):
        wait_until(lambda: self.row()["armed"] is False)

    def stretches(self, job):
        """The stretches of an answer, on the clock of the ground truth."""
        start = self.host.start_ns(self.name)
        return [(start + span["start_ms"] * 1e6, start + span["end_ms"] * 1e6)
                for span in job["recorded"]]

    def assert_equals_truth(self, rows, api, stretches):
        """`rows` of syncs have the calls of `api` that began in the stretches."""
        calls = truth.load(self.log).calls(api)
        real = [call for call in calls
                if any(start <= call.start < end for start, end in stretches)]
        reported = sum(row["calls"] for row in rows if row["api"] == api)
        self.assertLessEqual(abs(reported - len(real)), EDGES * len(stretches),
                             f"{api}: {reported} of {len(real)}")
        self.assertGreater(len(calls), len(real), "it trained while it slept, too")
        return len(real)


class Armed(Case):
    def test_a_program_records_while_it_is_armed_and_no_longer(self):
        alone = self.host.alone([os.path.join(BUILT, "steady_host13"), "/nowhere"],
                                {"LD_LIBRARY_PATH": SIM})
        self.start_steady("steady")
        self.assertEqual(self.row()["armed"], False)
        time.sleep(0.3)
        armed = self.answer("arm", "steady", "--for", "1s")
        self.assertEqual((armed["armed"], armed["processes"], armed["for_ms"]),
                         (True, 1, 1000))
        self.assertEqual(armed["job"]["name"], "steady")
        self.wait_until_asleep()
        time.sleep(0.3)
        done = self.end()
        self.assertEqual((done.status, done.stdout, done.stderr),
                         (alone.status, alone.stdout, alone.stderr))
        self.assertEqual(alone.status, 7)

        report = self.answer("syncs", "steady")
        spans = self.stretches(report["job"])
        self.assertEqual(len(spans), 1)
        length = (spans[0][1] - spans[0][0]) / 1e6
        self.assertTrue(1000 <= length < 1500, length)
        self.assertAlmostEqual(report["job"]["recorded_ms"], length, delta=0.01)
        self.assertGreater(report["job"]["duration_ms"], length + 500)
        real = self.assert_equals_truth(report["sync_points"], "cudaStreamSynchronize", spans)
        self.assertGreater(real, 50)
        lines = {row["site"]["line"] for row in report["sync_points"]}
        self.assertEqual(lines, {expected.site("steady.cu", "steady_copy"),
                                 expected.site("steady.cu", "steady_sync")})
        launches = sum(row["launches"]
                       for row in self.answer("report", "steady")["processes"])
        self.assertLessEqual(abs(launches - 4 * real), 4 * EDGES)
        text = self.lull("syncs", "steady").stdout
        self.assertRegex(text.splitlines()[0],
                         r"; recorded 1\.\d s of \d+\.\d s \(1 stretch\)$")

    def test_a_python_training_records_while_it_is_armed_and_no_longer(self):
        command = [sys.executable, os.path.join(PUPPETS, "trainer.py"), "13", "200"]
        self.start("trainer", command)
        wait_until(lambda: self.row().get("processes") == 1)
        time.sleep(0.7)
        self.assertEqual(self.answer("arm", "trainer", "--for", "1.5s")["processes"], 1)
        self.wait_until_asleep()
        done = self.end()
        self.assertEqual((done.status, done.stderr), (0, ""))
        self.assertIn("loss", done.stdout)
        report = self.answer("syncs", "trainer")
        spans = self.stretches(report["job"])
        self.assertEqual(len(spans), 1)
        real = self.assert_equals_truth(report["sync_points"], "cudaStreamSynchronize", spans)
        self.assertGreater(real, 3)
        sites = {row["site"]["line"] for row in report["sync_points"]
                 if row["api"] == "cudaStreamSynchronize"}
        self.assertEqual(sites, {expected.site("trainer.py", "loss_sync")})

    def test_a_job_that_was_not_started_dormant_can_be_put_to_sleep_and_woken_up(self):
        self.start_steady("plain", dormant=False)
        self.assertEqual(self.row()["armed"], True)
        time.sleep(0.3)
        asleep = self.lull("disarm", "plain")
        self.assertRegex(asleep.stdout, r'^asleep: job [0-9a-f]{8} "plain", 1 process\n$')
        time.sleep(0.5)
        armed = self.lull("arm", "plain")
        self.assertRegex(armed.stdout, r'^armed: job [0-9a-f]{8} "plain", 1 process\n$')
        self.assertRegex(self.lull("jobs").stdout, r"\barmed\b")
        time.sleep(0.3)
        self.lull("disarm", "plain")
        wait_until(lambda: " asleep " in self.lull("jobs").stdout)
        self.assertEqual(self.end().status, 7)
        report = self.answer("syncs", "plain")
        spans = self.stretches(report["job"])
        self.assertEqual(len(spans), 2)
        self.assertEqual(report["job"]["recorded"][0]["start_ms"], 0)
        self.assert_equals_truth(report["sync_points"], "cudaStreamSynchronize", spans)

    def test_a_later_command_takes_the_place_of_an_earlier_one(self):
        self.start_steady("again")
        self.answer("arm", "again")
        self.assertEqual(self.row()["armed"], True)
        self.answer("arm", "again", "--for", "300ms")
        self.wait_until_asleep()
        self.end()
        self.assertEqual(len(self.answer("syncs", "again")["job"]["recorded"]), 1)

    def test_says_what_is_wrong(self):
        self.start_steady("one")
        for arguments, status, word in (
                (["arm", "nobody"], 1, 'no job "nobody"'),
                (["arm", "one", "--for", "soon"], 2, "--for: 'soon' is no time"),
                (["arm", "one", "--for", "0s"], 2, "--for"),
                (["arm", "one", "--gpu", "all"], 2, "--gpu"),
                (["arm", "one", "--schedule", "wait=1,active=0"], 2, "--schedule"),
                (["arm", "one", "--gpu", "host", "--schedule", "wait=1"], 2, "--schedule"),
                (["disarm", "one", "--for", "1s"], 2, "--for")):
            done = self.lull(*arguments)
            self.assertEqual(done.status, status, arguments)
            self.assertIn(word, done.stderr)
            self.assertEqual(done.stdout, "")
        self.end()
        done = self.lull("arm", "one")
        self.assertEqual(done.status, 1)
        self.assertRegex(done.stderr, r"^lull arm: job [0-9a-f]{8} has ended\n$")


class Deaths(Case):
    def kill_worker(self):
        before = self.worker()
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: self.worker() not in (None, before))

    def kill_collector(self):
        for pid, _, arguments in processes():
            if (arguments and os.path.basename(arguments[0]) == "lulld" and
                    any(self.host.environment["XDG_DATA_HOME"] in a for a in arguments)):
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda p=pid: not os.path.exists(f"/proc/{p}/exe"))
                return
        self.fail("no collector")

    def test_a_relay_worker_that_is_killed_leaves_the_job_as_it_is(self):
        self.start_steady("deaths")
        self.kill_worker()
        time.sleep(0.3)
        self.assertEqual(self.row()["armed"], False)
        self.answer("arm", "deaths", "--for", "3s")
        time.sleep(0.3)
        self.kill_worker()
        self.assertEqual(self.row()["armed"], True)
        self.wait_until_asleep()
        self.end()
        report = self.answer("syncs", "deaths")
        spans = self.stretches(report["job"])
        self.assertEqual(len(spans), 1)
        self.assertTrue(3 <= (spans[0][1] - spans[0][0]) / 1e9 < 5)
        self.assert_equals_truth(report["sync_points"], "cudaStreamSynchronize", spans)

    def test_a_collector_that_is_killed_finds_the_job_as_it_is(self):
        self.start_steady("deaths")
        self.answer("arm", "deaths")
        time.sleep(0.3)
        self.kill_collector()
        time.sleep(0.3)
        # `lull` starts another one, to which the relay comes back.
        asleep = self.answer("disarm", "deaths")
        self.assertEqual((asleep["armed"], asleep["processes"]), (False, 1))
        self.end()
        report = self.answer("syncs", "deaths")
        spans = self.stretches(report["job"])
        self.assertEqual(len(spans), 1)
        self.assert_equals_truth(report["sync_points"], "cudaStreamSynchronize", spans)


class Remote(Case):
    """A collector over TCP, with tokens."""

    def setUp(self):
        super().setUp()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.database = os.path.join(self.host.environment["XDG_DATA_HOME"], "remote.db")
        self.token = f"{self.database}.tokens"  # that lulld makes
        self.collector = ["--collector", f"127.0.0.1:{self.port}", "--token-file", self.token]
        self.lulld = None
        self.start_collector()
        self.addCleanup(self.stop_collector)

    def write_token(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)
        return path

    def start_collector(self):
        self.lulld = subprocess.Popen(
            [LULLD, "--listen", f"127.0.0.1:{self.port}", "--database", self.database],
            env=self.host.environment, stderr=subprocess.DEVNULL)
        wait_until(lambda: self.lull("jobs").status == 0)

    def stop_collector(self):
        self.lulld.kill()
        self.lulld.wait()

    def test_arms_through_a_remote_collector_and_says_when_that_is_away(self):
        self.start_steady("far")
        wrong = guest.execute(
            [guest.LULL, "arm", "far", "--collector", f"127.0.0.1:{self.port}",
             "--token-file", self.write_token("wrong", "wrong")], self.host.environment)
        self.assertEqual(wrong.status, 1)
        self.assertIn("refuses the token", wrong.stderr)
        self.assertEqual(self.row()["armed"], False)
        self.assertEqual(self.answer("arm", "far", "--for", "2s")["processes"], 1)
        self.stop_collector()
        done = self.lull("disarm", "far")
        self.assertEqual(done.status, 1)
        self.assertIn(f"cannot reach the collector at 127.0.0.1:{self.port}", done.stderr)
        time.sleep(2.2)  # the time is up by the relay's clock
        self.start_collector()
        self.wait_until_asleep()
        self.assertEqual(self.answer("arm", "far", "--for", "200ms")["armed"], True)
        self.wait_until_asleep()
        self.end()
        report = self.answer("syncs", "far")
        spans = self.stretches(report["job"])
        self.assertEqual(len(spans), 2)
        self.assertTrue(2 <= (spans[0][1] - spans[0][0]) / 1e9 < 2.6)
        self.assert_equals_truth(report["sync_points"], "cudaStreamSynchronize", spans)

    def test_says_when_the_relay_does_not_answer(self):
        self.start_steady("mute")
        os.kill(self.worker(), signal.SIGSTOP)
        done = self.lull("arm", "mute", "--for", "300ms")
        self.assertEqual(done.status, 1)
        self.assertIn("has not confirmed within 5s", done.stderr)
        self.stop_collector()
        self.start_collector()
        done = self.lull("arm", "mute")
        self.assertEqual(done.status, 1)
        self.assertIn("not connected", done.stderr)
        os.kill(self.worker(), signal.SIGCONT)
        # What it had received counts, and the next command as well.
        self.assertEqual(self.answer("arm", "mute", "--for", "300ms")["processes"], 1)
        self.wait_until_asleep()
        self.assertEqual(self.end().status, 7)


class GpuTruth(Case):
    def periods(self, start, end):
        """Times between the ends of two steps, of the steps in [start, end)."""
        ends = [call.end for call in truth.load(self.log).calls("cudaStreamSynchronize")
                if start <= call.start < end]
        return [b - a for a, b in zip(ends, ends[1:])]

    def test_is_there_for_the_armed_stretch_and_tracing_is_off_after_it(self):
        self.start_steady("traced", "--gpu", "host")
        time.sleep(1)
        self.answer("arm", "traced", "--gpu", "continuous", "--for", "2s")
        self.wait_until_asleep()
        wait_until(lambda: self.answer("gaps", "traced")["gpu"]["traced_ms"] > 1800)
        time.sleep(0.5)
        self.assertEqual(self.answer("report", "traced")["processes"][0]["cupti_state"],
                         "ready")
        time.sleep(0.5)
        self.assertEqual(self.end().status, 7)
        report = self.answer("report", "traced")
        ((start, end),) = self.stretches(report["job"])
        gpu = report["gpu"]
        self.assertEqual(gpu["mode"], "continuous")
        length = (end - start) / 1e6
        self.assertTrue(0.95 * length < gpu["traced_ms"] <= length, (gpu["traced_ms"], length))
        for span in gpu["spans"]:
            self.assertGreaterEqual(span["start_ms"], report["job"]["recorded"][0]["start_ms"])
            self.assertLessEqual(span["start_ms"] + span["duration_ms"],
                                 report["job"]["recorded"][0]["end_ms"] + 1)
        busy = sum(min(op.end, end) - max(op.start, start)
                   for op in truth.load(self.log).ops()
                   if op.kind in ("kernel", "copy", "memset") and
                   op.start < end and op.end > start) / 1e6
        self.assertLessEqual(abs(gpu["busy_ms"] - busy), 0.03 * busy)
        self.assertAlmostEqual(sum(row["total_ms"] for row in report["causes"]),
                               gpu["idle_ms"], delta=0.01)
        before = statistics.median(self.periods(0, start))
        after = statistics.median(self.periods(end + 5e8, float("inf")))
        self.assertLess(abs(after / before - 1), 0.15, (before, after))


class Torch(Case):
    def test_reaches_both_ranks_of_torchrun_and_leaves_the_workers_alone(self):
        self.start("ranks", guest_python_test.two_ranks("ranks_loader_script.py", self.alive,
                                                        self.folder.name))
        ranks = [os.path.join(self.folder.name, f"workers.{rank}") for rank in (0, 1)]
        wait_until(lambda: all(os.path.exists(path) for path in ranks), 90)
        armed = self.answer("arm", "ranks", "--for", "3s")
        self.assertEqual(armed["processes"], 2)
        self.wait_until_asleep()
        done = self.end()
        self.assertEqual(done.status, 0, done.stderr)
        self.assertIn("trained", done.stdout)
        report = self.answer("report", "ranks")
        self.assertEqual(report["job"]["processes"], 2)
        pids = {}
        for path in ranks:
            with open(path) as file:
                pid, *workers = map(int, file.read().split())
            pids[pid] = workers
        self.assertEqual({row["pid"] for row in report["processes"]}, set(pids))
        for row in report["processes"]:
            self.assertTrue(row["torch"])
            self.assertGreater(row["events"], 10)
            self.assertGreater(row["data_wait_ms"], 0)
            self.assertTrue(3000 <= row["recorded_ms"] < 4000, row["recorded_ms"])
            self.assertEqual(len(pids[row["pid"]]), 2, "workers of which nothing is there")


if __name__ == "__main__":
    unittest.main()
