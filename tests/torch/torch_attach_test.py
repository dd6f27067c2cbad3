#!/usr/bin/env python3
"""`lull attach` to the CUDA build of PyTorch in the middle of its training: its lines, GPU
truth, and memory to the byte, with what was allocated before lull came, or while it
slept."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import scenario
from scenario import TorchCase, checks, guest, python

MIB = 1 << 20


class Attached(TorchCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        with tempfile.TemporaryDirectory(prefix="lull-attach-") as folder:
            cls.attach_and_look(folder)
        cls.memory, cls.allocs, cls.syncs, cls.gaps = (
            checks.query(guest.LULL, verb, "seen")
            for verb in ("memory", "allocs", "syncs", "gaps"))

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    @classmethod
    def attach_and_look(cls, folder):
        path = lambda name: os.path.join(folder, name)
        for name in ("training", "alive"):
            open(path(name), "w").close()
        job = subprocess.Popen(
            python("attached.py", folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**cls.host.environment, "LULL_SIM_CONFIG": scenario.CONFIG})
        try:
            assert job.stdout.readline() == "training\n"
            time.sleep(1)
            attach = subprocess.Popen(
                [guest.LULL, "attach", str(job.pid), "--gpu", "continuous",
                 "--overhead-budget", "100", "--name", "seen"],
                env=cls.host.environment, stderr=subprocess.PIPE, text=True)
            cls.said = attach.stderr.readline()
            time.sleep(2)
            os.remove(path("training"))
            guest.wait_until(lambda: os.path.exists(path("changed")))
            with open(path("changed")) as file:
                cls.told = json.load(file)
            attach.send_signal(signal.SIGINT)
            cls.report = attach.communicate(timeout=60)[1]
            cls.status = attach.returncode
            os.remove(path("alive"))
            cls.outcome = (*job.communicate(timeout=60), job.returncode)
        finally:
            job.kill()

    def test_the_job_is_what_it_was(self):
        self.assertIn("watching process", self.said)
        self.assertEqual(self.status, 0, self.report)
        self.assertEqual(self.outcome, (f"trained 1 {50 * MIB}\n", "", 7))

    def test_memory_is_that_of_pytorch_itself(self):
        (row,) = [row for row in self.memory["memory"] if row["allocator"] == "torch_cuda"]
        self.assertEqual(row["live_bytes"], self.told["live"])
        sites = {site["site"]["function"]: site for site in row["peak_sites"]}
        before = sites["(allocated before lull came)"]["bytes"]
        self.assertTrue(self.told["least"] <= before <= self.told["peak"], (before, self.told))

    def test_what_was_there_before_is_a_row_of_its_own(self):
        rows = [row for row in self.allocs["allocation_sites"]
                if row["site"]["function"] == "(allocated before lull came)"]
        self.assertEqual(len(rows), 1, rows)
        self.assertEqual((rows[0]["allocator"], rows[0]["calls"]), ("torch_cuda", 0))
        # Steps leave nothing behind.
        self.assertEqual(rows[0]["live_bytes"], self.told["live"] - 50 * MIB)
        new = scenario.site("attached.py", "new")
        (row,) = [row for row in self.allocs["allocation_sites"]
                  if row["site"]["line"] == new and row["allocator"] == "torch_cuda"]
        self.assertEqual((row["calls"], row["live_bytes"]), (1, 50 * MIB))

    def test_the_line_that_synchronises_and_gpu_truth(self):
        line = scenario.site("attached.py", "loss")
        rows = [row for row in self.syncs["sync_points"] if row["site"]["line"] == line]
        self.assertGreater(sum(row["calls"] for row in rows), 50)
        self.assertGreater(self.gaps["gpu"]["traced_ms"], 1000)
        self.assertGreater(self.gaps["gpu"]["kernels"], 100)


class Asleep(TorchCase):
    """Frees and allocations that happened between two `lull arm`."""

    def test_memory_is_that_of_pytorch_after_a_sleep(self):
        host = guest.Host()
        self.addCleanup(host.close)
        with tempfile.TemporaryDirectory(prefix="lull-asleep-") as folder:
            os.environ.update(host.environment)
            path = lambda name: os.path.join(folder, name)
            for name in ("training", "alive"):
                open(path(name), "w").close()
            job = subprocess.Popen(
                [guest.LULL, "run", "--dormant", "--quiet", "--name", "slept", "--",
                 *python("attached.py", folder)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**host.environment, "LULL_SIM_CONFIG": scenario.CONFIG})
            try:
                self.assertEqual(job.stdout.readline(), "training\n")
                self.say("arm")
                time.sleep(1)
                self.say("disarm")
                self.assertEqual([row["function"] for row in self.peak_sites()][:1],
                                 ["(allocated before lull came)"])
                os.remove(path("training"))
                guest.wait_until(lambda: os.path.exists(path("changed")))
                with open(path("changed")) as file:
                    told = json.load(file)
                self.say("arm")
                open(path("touch"), "w").close()
                guest.wait_until(lambda: not os.path.exists(path("touch")))
                self.say("disarm")
                self.assertEqual(self.row()["live_bytes"], told["live"])
                os.remove(path("alive"))
                outcome = (*job.communicate(timeout=60), job.returncode)
            finally:
                job.kill()
        self.assertEqual(outcome, (f"trained 1 {50 * MIB}\n", "", 7))

    def say(self, verb):
        done = subprocess.run([guest.LULL, verb, "slept"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def row(self):
        (row,) = [row for row in checks.query(guest.LULL, "memory", "slept")["memory"]
                  if row["allocator"] == "torch_cuda"]
        return row

    def peak_sites(self):
        return [site["site"] for site in self.row()["peak_sites"]]


if __name__ == "__main__":
    unittest.main(verbosity=2)
