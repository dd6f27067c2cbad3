#!/usr/bin/env python3
"""`lull attach` on jobs that were started without lull: it comes, looks, and leaves them
as they were.

LULL_ATTACH_ROUNDS attachments to each job (default 8; the slow tier does 100, on every
CPython of the machine).
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import guest
import guest_python_test
import interpreters
from guest import wait_until

BUILT = os.environ["LULL_PUPPETS"]
SIM = os.environ["LULL_SIM"]
WORK = os.path.join(BUILT, "libwork12.so")
GUESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guests")
ROUNDS = int(os.environ.get("LULL_ATTACH_ROUNDS", "8"))
EVERY_PYTHON = ROUNDS >= 100


def setUpModule():
    """Where the kernel lets nobody trace there is nothing to be tried."""
    child = subprocess.Popen(["sleep", "60"])
    try:
        done = guest.execute([guest.LULL, "ps", str(child.pid), "--json"], dict(os.environ))
        refused = [one["id"] for one in json.loads(done.stdout)["process"]["obstacles"]]
        if "ptrace_denied" in refused or "yama" in refused:
            raise unittest.SkipTest("ptrace is forbidden here: %s" % refused)
    finally:
        child.kill()
        child.wait()


# Whom it has stopped, and for how long: one kind of threads at least.
STOPS = (r"watching process.*; no thread that ran was stopped"
         r"( for longer than \d[\d.]*m?u?s|; one that was waiting anyway was held for up to \d)")


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)
        folder = tempfile.TemporaryDirectory(prefix="lull-attach-")
        self.addCleanup(folder.cleanup)
        self.alive = os.path.join(folder.name, "alive")
        self.log = os.path.join(folder.name, "truth")

    def environment(self, **more):
        return {**self.host.environment, "LD_LIBRARY_PATH": SIM, "OMP_NUM_THREADS": "2",
                # Threads that spin for one without a processor take minutes for steps of seconds.
                "OMP_WAIT_POLICY": "passive",
                "LULL_SIM_CONFIG": "kernel_us=100", "PYTHONDONTWRITEBYTECODE": "1", **more}

    def start(self, command, **environment):
        """A job that knows nothing of lull; it says `training` when it does."""
        with open(self.alive, "w"):
            pass
        self.job = subprocess.Popen(command, env=self.environment(**environment),
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
        self.addCleanup(self.job.wait)
        self.addCleanup(self.job.kill)

    def outcome(self):
        if os.path.exists(self.alive):
            os.remove(self.alive)
        stdout, stderr = self.job.communicate(timeout=120)
        return guest.Outcome(self.job.returncode, stdout.decode(), stderr.decode())

    def lull(self, *arguments, **options):
        return guest.execute([guest.LULL, *arguments], self.host.environment, **options)

    def answer(self, *arguments):
        done = self.lull(*arguments, "--json")
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)

    def attach(self, *options, pid=None):
        done = self.lull("attach", str(pid or self.job.pid), *options)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertRegex(done.stderr, STOPS)
        return done

    def come_and_go(self, *options):
        """ROUNDS times; the job runs all the while."""
        for _ in range(ROUNDS):
            self.assertIsNone(self.job.poll(), "the job has ended")
            self.attach("--for", "100ms", "--quiet", *options)


class Unnoticed(Case):
    """The same results, output and exit status as without lull."""

    def check_python(self, python, *library):
        script = [python, os.path.join(GUESTS, "attached_script.py")]
        self.start([*script, self.alive, *library])
        self.assertEqual(self.job.stdout.readline(), b"training\n")
        self.come_and_go("--gpu", "continuous")
        attached = self.outcome()
        steps = attached.stdout.split()[0]
        alone = guest.execute([*script, steps, *library], self.environment())
        self.assertEqual(attached.stdout, alone.stdout.replace("training\n", ""))
        self.assertEqual((attached.status, attached.stderr), (7, ""))
        self.assertEqual((alone.status, alone.stderr), (7, ""))

    def test_python_that_works_on_the_gpu(self):
        self.check_python(sys.executable, WORK)

    @unittest.skipUnless(EVERY_PYTHON, "in the slow tier")
    def test_every_python(self):
        found = interpreters.with_test_suite()
        self.assertGreater(len(found), 0)
        for series, python in found.items():
            with self.subTest(series):
                self.check_python(python, WORK)

    def test_a_cpp_program(self):
        self.start([os.path.join(BUILT, "steady_host12"), self.alive])
        time.sleep(0.3)
        self.come_and_go("--gpu", "continuous")
        outcome = self.outcome()
        self.assertEqual((outcome.status, outcome.stdout, outcome.stderr), (7, "trained\n", ""))

    def test_pytorch(self):
        script = [guest_python_test.torch_python(), os.path.join(GUESTS, "attached_torch.py")]
        cpu = {"LD_LIBRARY_PATH": ""}  # a CUDA build has no use for these
        self.start([*script, self.alive], **cpu)
        self.assertEqual(self.job.stdout.readline(), b"training\n")
        self.come_and_go()
        attached = self.outcome()
        alone = guest.execute([*script, attached.stdout.split()[0]], self.environment(**cpu),
                              timeout=1200)
        self.assertEqual(attached.stdout, alone.stdout.replace("training\n", ""))
        self.assertEqual((attached.status, attached.stderr), (7, ""))
        self.assertEqual((alone.status, alone.stderr), (7, ""))


class Ranks(Case):
    def test_attach_to_a_launcher_reaches_its_ranks_and_no_workers(self):
        folder = os.path.dirname(self.alive)
        self.start(guest_python_test.two_ranks("ranks_loader_script.py", self.alive, folder))
        ranks = [os.path.join(folder, f"workers.{rank}") for rank in (0, 1)]
        wait_until(lambda: all(os.path.exists(path) for path in ranks), 90)
        self.attach("--for", "2s", "--name", "seen", "--quiet")
        report = self.answer("report", "seen")
        self.assertEqual(sorted(row["rank"] for row in report["processes"]), [0, 1])
        waits = self.answer("waits", "seen")["host_waits"]
        self.assertGreater(sum(row["total_ms"] for row in waits if row["kind"] == "data"), 0)
        self.assertEqual(self.outcome().status, 0)


class Refused(Case):
    """A clear message, an exit code, and a target that is left alone."""

    def check_refused(self, pid, *words):
        done = self.lull("attach", str(pid), "--for", "1s")
        self.assertEqual(done.status, 125, done.stderr)
        for word in words:
            self.assertRegex(done.stderr, word)
        self.assertNotIn("liblull", self.maps(pid))

    @staticmethod
    def state(pid):
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(") ", 1)[1][0]

    @staticmethod
    def maps(pid):
        try:
            with open(f"/proc/{pid}/maps") as file:
                return file.read()
        except OSError:
            return ""

    def test_nobody(self):
        self.check_refused(4194000, "no process 4194000")

    def test_a_stopped_process(self):
        self.start([os.path.join(BUILT, "steady_host13"), self.alive])
        time.sleep(0.2)
        os.kill(self.job.pid, signal.SIGSTOP)
        wait_until(lambda: self.state(self.job.pid) == "T")
        self.check_refused(self.job.pid, "stopped", "kill -CONT")
        os.kill(self.job.pid, signal.SIGCONT)
        self.assertEqual(self.outcome().status, 7)

    def test_a_job_of_lull_run(self):
        self.start([guest.LULL, "run", "--quiet", "--",
                    os.path.join(BUILT, "steady_host13"), self.alive])
        child = wait_until(lambda: subprocess.run(
            ["pgrep", "-P", str(self.job.pid), "-f", "^[^ ]*steady_host13"],
            stdout=subprocess.PIPE).stdout.split())[0]
        time.sleep(0.3)
        done = self.lull("attach", child.decode(), "--for", "1s")
        self.assertEqual(done.status, 125)
        self.assertIn("lull arm", done.stderr)
        self.assertEqual(self.outcome().status, 7)

    def test_wrong_command_lines(self):
        for arguments in (("attach",), ("attach", "--for", "soon", "1"), ("attach", "x")):
            done = self.lull(*arguments)
            self.assertEqual(done.status, 2, arguments)
            self.assertNotEqual(done.stderr, "")


class Interrupted(Case):
    def test_ctrl_c_detaches(self):
        self.start([os.path.join(BUILT, "steady_host13"), self.alive])
        time.sleep(0.3)
        for delay in (0.0, 0.01, 0.03, 0.06, 0.1, 0.3, 1.0):
            lull = subprocess.Popen([guest.LULL, "attach", str(self.job.pid), "--quiet"],
                                    env=self.host.environment, stderr=subprocess.PIPE)
            time.sleep(delay)
            lull.send_signal(signal.SIGINT)
            lull.communicate(timeout=60)
            self.assertIsNone(self.job.poll())
        self.attach("--for", "200ms", "--quiet")
        self.assertEqual(self.outcome().status, 7)

    def attach_and_kill(self, delay):
        lull = subprocess.Popen([guest.LULL, "attach", str(self.job.pid), "--quiet"],
                                env=self.host.environment, stderr=subprocess.PIPE)
        time.sleep(delay)
        lull.kill()
        lull.communicate(timeout=60)
        self.assertIsNone(self.job.poll())

    def test_kill_9_at_any_moment_leaves_the_job_alone(self):
        self.start([sys.executable, os.path.join(GUESTS, "attached_script.py"), self.alive,
                    WORK])
        self.assertEqual(self.job.stdout.readline(), b"training\n")
        for i in range(ROUNDS):
            self.attach_and_kill(0.1 * (i % 8))  # before, in and behind the attaching
        delay = 0.8
        while not self.answer("jobs")["jobs"]:  # slow: none has come as far as that
            self.attach_and_kill(delay)
            delay *= 2
        # Not before the relay that the last one left has put the shim to sleep.
        wait_until(lambda: self.lull("attach", str(self.job.pid), "--for", "500ms", "--name",
                                     "last", "--quiet").status == 0)
        outcome = self.outcome()
        self.assertEqual((outcome.status, outcome.stderr), (7, ""))
        self.assertGreater(len(self.answer("syncs", "last")["sync_points"]), 0)
        self.assertEqual(outcome.stdout.split()[2], "[]")
        # The relays that were left ended their jobs.
        wait_until(lambda: all(job["ended"] for job in self.answer("jobs")["jobs"]))
        self.assertGreater(len(self.answer("jobs")["jobs"]), 1)

    def test_a_wall_clock_that_is_set_back_makes_nothing_longer(self):
        self.start([os.path.join(BUILT, "steady_host13"), self.alive])
        time.sleep(0.3)
        offset = self.alive + ".clock"
        lull = subprocess.Popen(
            [guest.LULL_WITH_SHARED_LIBC, "attach", str(self.job.pid), "--for", "2s", "--quiet"],
            env={**self.host.environment, **guest.with_settable_clock(offset)},
            stderr=subprocess.PIPE)
        self.addCleanup(lull.kill)
        wait_until(lambda: self.answer("jobs")["jobs"])
        with open(offset, "w") as file:
            file.write("-3600")
        lull.communicate(timeout=60)
        self.assertEqual((lull.returncode, self.job.poll()), (0, None))
        self.assertEqual(self.outcome().status, 7)

    def test_a_job_that_ends_meanwhile(self):
        self.start([os.path.join(BUILT, "steady_host13"), self.alive])
        time.sleep(0.3)
        lull = subprocess.Popen([guest.LULL, "attach", str(self.job.pid), "--quiet"],
                                env=self.host.environment, stderr=subprocess.PIPE)
        wait_until(lambda: self.answer("jobs")["jobs"])
        time.sleep(0.5)
        self.assertEqual(self.outcome().status, 7)
        lull.communicate(timeout=60)
        self.assertEqual(lull.returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
