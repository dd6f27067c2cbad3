#!/usr/bin/env python3
"""What a batch costs in the workers of a DataLoader: the lines and the number of workers
that `lull data` tells, against the clock of the data set itself. PyTorch on the CPU.

LULL_SECONDS=240 makes the figures sharp; the bounds follow."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import contract
import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tools", "demo_job")]
import checks
import expected

SECONDS = float(os.environ.get("LULL_SECONDS", "8"))
LONG = SECONDS >= 60
# Of those that differ from others only in how the workers are made.
BRIEF = SECONDS if LONG else SECONDS / 2
ALLOWED_POINTS = 3  # of what many samples say; of few, chance beside it
LOOKS_PER_SECOND = 10
# Before Python 3.14 a thread that asks for the interpreter's lock while that ends is ended there. If
# it sends a worker's batch, that may be in a destructor of PyTorch, which aborts the worker (a core of
# PyTorch 1.13 has THPVariable_subclass_dealloc, PyEval_RestoreThread, pthread_exit, std::terminate and
# no frame of ours). Seen in 2 of 95 runs of spawned workers on a full machine.
ABORTED_AT_ITS_END = "terminate called without an active exception"


def torch_python():
    found = subprocess.run([os.path.join(ROOT, "tools", "python_with_torch")],
                           stdout=subprocess.PIPE, check=False)
    return found.stdout.decode().strip()


@unittest.skipUnless(torch_python(), "no PyTorch here")
class WorkerLines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def run_program(self, name, workers, start="fork", *options, seconds=SECONDS):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "truth")
            command = [guest.LULL, "run", "--quiet", "--name", name, "--", torch_python(), "-W",
                       "ignore", os.path.join(PUPPETS, "loader_costs.py"), "--workers",
                       str(workers), "--start", start, "--seconds",
                       str(seconds / max(1, workers) if LONG else seconds), "--file", file,
                       *options]
            for _ in range(3):
                done = guest.execute(command, self.host.environment, timeout=SECONDS + 120)
                if not done.stderr.startswith(ABORTED_AT_ITS_END):
                    break
            self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))
            with open(file) as truth:
                return json.load(truth), checks.query(guest.LULL, "data", name)

    def lines(self, data):
        return {row["line"]: row for row in data["lines"]
                if row["file"].endswith("loader_costs.py")}

    def check_lines(self, name, workers, start="fork", *options, seconds=SECONDS):
        truth, data = self.run_program(name, workers, start, *options, seconds=seconds)
        contract.check(self, "data", data)
        lines = self.lines(data)
        role = "loader" if workers else "main"
        self.assertEqual(data["workers"], workers)
        self.assertEqual({row["role"] for row in lines.values()}, {role})
        self.assertGreater(data["batches"], 0)
        whole = [row for row in data["parts"] if row["role"] == role]
        samples = sum(row["samples"] for row in whole)
        # The sampler shares one core's 0.5 % out, and this machine among its users.
        self.assertGreater(samples, seconds * LOOKS_PER_SECOND / 8, whole)
        (data_set,) = [row for row in whole if row["part"] == "data_set"]
        for site in ("decode", "augment"):
            row = lines[expected.site("loader_costs.py", site)]
            share = truth[site] / truth["fetch"]
            seen = row["total_ms"] / data_set["total_ms"]
            allowed = ALLOWED_POINTS / 100
            if not LONG:
                allowed += 3.3 * (share * (1 - share) / data_set["samples"]) ** 0.5
            self.assertLess(abs(seen - share), allowed, (site, seen, share, row, whole))
            if row["share_percent"] is not None:
                self.assertLessEqual(row["low_percent"], row["share_percent"])
                self.assertLessEqual(row["share_percent"], row["high_percent"])
        return truth, data

    def test_without_workers(self):
        self.check_lines("alone", 0)

    def test_one_worker(self):
        self.check_lines("one", 1, seconds=BRIEF)

    def test_three_workers(self):
        self.check_lines("three", 3)

    def test_spawned_workers(self):
        self.check_lines("spawned", 2, "spawn", seconds=BRIEF)

    def test_workers_of_a_fork_server(self):
        self.check_lines("served", 2, "forkserver", seconds=BRIEF)

    def test_how_many_workers_would_keep_up(self):
        truth, data = self.check_lines("rested", 1, "fork", "--rest")
        enough = data["enough"]
        if enough["workers"] is None:  # PyTorch before 1.13, or no time to sleep in
            self.assertTrue(enough["unknown_because"])
            self.skipTest(enough["unknown_because"])
        # Of a batch: what its four items took against what the training did with it.
        real = truth["fetch"] / truth["pace"]
        self.assertGreater(real, 2)
        self.assertLess(abs(enough["workers"] - real), 0.15 * real, (enough, truth))
        self.assertLessEqual(enough["low"], enough["workers"])
        self.assertLessEqual(enough["workers"], enough["high"])
        busy = data["busy"]
        self.assertGreater(busy["share_percent"], 80, busy)
        self.assertLessEqual(busy["mean"], 1.001)


if __name__ == "__main__":
    unittest.main(verbosity=2)
