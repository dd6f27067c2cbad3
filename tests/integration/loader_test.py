#!/usr/bin/env python3
"""The time that a training waits for its batches, by lull and by the program's own clock:
PyTorch's DataLoader on the CPU, with and without workers, with files that are in memory
and files that are not."""

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

ON = 2  # lull::abi::ScopeHookState::kOn


def torch_python():
    found = subprocess.run([os.path.join(ROOT, "tools", "python_with_torch")],
                           stdout=subprocess.PIPE, check=False)
    return found.stdout.decode().strip()


def known(version):
    major, minor = (int(part) for part in version.split(".")[:2])
    return (1, 13) <= (major, minor) <= (2, 15)


@unittest.skipUnless(torch_python(), "no PyTorch here")
class TorchOnTheCpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.python = torch_python()

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def ask(self, verb, name, *options):
        environment = dict(os.environ)
        os.environ.update(self.host.environment)
        try:
            return checks.query(guest.LULL, verb, name, *options)
        finally:
            os.environ.clear()
            os.environ.update(environment)


class Loader(TorchOnTheCpu):
    def run_loader(self, name, *options):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "spans")
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--name", name, "--overhead-budget", "100",
                 "--", self.python, "-W", "ignore", os.path.join(PUPPETS, "loader.py"), "--file", file,
                 *options], self.host.environment)
            self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))
            with open(file) as spans:
                return json.load(spans)

    def check(self, name, *options):
        """A run whose main thread lost its processor, as among three workers on two processors,
        may have lost it between the script's look at the clock and the loader: that is no
        error of ours, and another run is judged, two at most. One that was not disturbed
        stands."""
        for job in (name, f"{name}-again", f"{name}-third"):
            try:
                return job, *self.check_once(job, *options)
            except AssertionError:
                if job.endswith("-third") or not self.disturbed:
                    raise
        return None

    def check_once(self, name, *options):
        self.disturbed = False
        script = self.run_loader(name, *options)
        if not known(script["torch"]):
            self.skipTest(f"PyTorch {script['torch']}")
        waits = self.ask("waits", name)
        contract.check(self, "waits", waits)
        rows = [row for row in waits["host_waits"] if row["kind"] == "data"]
        told = sum(row["total_ms"] for row in rows)
        real = sum(end - start for start, end in script["next"]) / 1e6
        self.disturbed = script["delayed_ms"] > 0.02 * real
        print(f"{name}, PyTorch {script['torch']}: {real:.1f} ms by the script, {told:.1f} by lull "
              f"({100 * (told - real) / real:+.2f} %), {script['delayed_ms']:.1f} ms without a "
              "processor", file=sys.stderr)
        self.assertTrue(waits["data_exact"])
        self.assertLess(abs(told - real), 0.05 * real, (told, real, rows))
        at_next = [row for row in rows if row["site"]["line"] ==
                   expected.site("loader.py", "next")]
        self.assertEqual(len(at_next), 1, rows)
        # A wait for the GIL on the way in or out adds its time, and is no call.
        self.assertEqual(at_next[0]["count"], len(script["next"]), rows)
        self.assertEqual(at_next[0]["api"], "DataLoader.__next__")
        self.assertIn(script["class"][:8], "_SingleProcess _MultiProcessing")
        (loader,) = self.ask("data", name)["loaders"]
        self.assertEqual((loader["loader"], loader["calls"]),
                         (script["class"], len(script["next"])))
        self.assertLess(abs(loader["total_ms"] - real), 0.05 * real, loader)
        self.assertLessEqual(loader["blocked_ms"], loader["total_ms"])
        if script["class"].startswith("_Single"):  # what its data set sleeps
            self.assertGreater(loader["blocked_ms"], 24 * 2)
        (process,) = [row for row in self.ask("report", name)["processes"]
                      if row["data_wait_ms"] > 0]
        self.assertEqual(process["scope_hook"], ON)
        self.assertAlmostEqual(process["data_wait_ms"], told, delta=0.01)
        return script, told

    def test_without_workers(self):
        self.check("warm-0")

    def test_without_workers_and_cold(self):
        self.check("cold-0", "--cold")

    def test_with_one_worker(self):
        self.check("warm-1", "--workers", "1", "--start", "fork")

    def test_with_one_worker_and_cold(self):
        self.check("cold-1", "--workers", "1", "--cold", "--start", "fork")

    def test_with_three_workers(self):
        self.check("warm-3", "--workers", "3", "--start", "fork")

    def test_with_three_workers_and_cold(self):
        self.check("cold-3", "--workers", "3", "--cold", "--start", "fork")

    def test_with_spawned_workers(self):
        self.check("spawn-1", "--workers", "1", "--start", "spawn")

    def test_steps_are_made_of_it(self):
        job, script, _ = self.check("steps", "--start", "fork")
        steps = self.ask("steps", job)
        contract.check(self, "steps", steps)
        rows = steps["steps"][1:]
        self.assertEqual(steps["source"], "optimizer")
        # The first step has no beginning; the last next() is after the last step.
        real = sum(end - start for start, end in script["next"][1:-1]) / 1e6
        self.assertLess(abs(sum(row["data_ms"] for row in rows) - real), 0.05 * real)


if __name__ == "__main__":
    unittest.main()
