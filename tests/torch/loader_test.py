#!/usr/bin/env python3
"""A data loader that starves the GPU, with the CUDA build of PyTorch on the simulated
device: the parts of a step are those of the ground truth, and the advice is more
workers."""

import json
import os
import tempfile
import unittest

import scenario
from scenario import Scenario, TorchCase, guest, python

STEPS = 60


def setUpModule():
    global host
    host = guest.Host()
    os.environ.update(host.environment)


def tearDownModule():
    host.close()


def union(spans):
    """The same time in spans that do not overlap, in order."""
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def within(spans, since, until):
    """Time of the union of `spans` in [since, until)."""
    return sum(max(0, min(end, until) - max(start, since)) for start, end in union(spans))


class AStarvingGpu(TorchCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            waits = os.path.join(folder, "waits")
            cls.run_ = Scenario(host, "starving",
                                python("starving.py", "--steps", str(STEPS), "--waits", waits),
                                "kernel_us=100")
            if cls.run_.done.status == 0:
                with open(waits) as file:
                    cls.waits = {what: [tuple(wait) for wait in waits]
                             for what, waits in json.load(file).items()}
        cls.steps = cls.run_.ask("steps")

    def test_the_training_runs(self):
        self.assert_ran(self.run_)
        self.assertEqual(self.run_.done.stdout, "done\n")
        self.assert_nothing_lost(self.run_)
        self.assert_gpu_truth(self.run_)

    def test_every_step_is_found_by_its_optimizer(self):
        self.assertEqual((self.steps["source"], self.steps["count"]), ("optimizer", STEPS))
        first, *rows = self.steps["steps"]
        # Nobody knows when the first one began.
        self.assertEqual((first["number"], first["duration_ms"]), (1, None))
        self.assertEqual([row["number"] for row in rows], list(range(2, STEPS + 1)))
        self.assertAlmostEqual(first["start_ms"], rows[0]["start_ms"], delta=1e-3)
        for row, following in zip(rows, rows[1:]):
            self.assertAlmostEqual(row["start_ms"] + row["duration_ms"], following["start_ms"],
                                   delta=1e-3)

    def test_the_parts_of_a_step_are_those_of_the_ground_truth(self):
        rows = self.steps["steps"][1:]
        parts = ("kernel", "memcpy", "memset", "communication", "runtime", "data", "host",
                 "other")
        for row in rows:
            self.assertTrue(row["traced"])
            self.assertAlmostEqual(sum(row[f"{part}_ms"] for part in parts),
                                   row["duration_ms"], delta=1e-3)
        start = self.run_.start_ns()
        since = start + min(row["start_ms"] for row in rows) * 1e6
        until = start + max(row["start_ms"] + row["duration_ms"] for row in rows) * 1e6
        # Each part is what none of those before it has.
        known, before = [], 0
        for part, kind in (("kernel", "kernel"), ("memcpy", "copy"), ("memset", "memset")):
            known += [(op.start, op.end) for op in self.run_.truth.ops(kind)]
            total = within(known, since, until)
            told = sum(row[f"{part}_ms"] for row in rows)
            self.assertAlmostEqual(told, (total - before) / 1e6, msg=part,
                                   delta=0.01 * (total - before) / 1e6)
            before = total
        # The parts of next() in which CUDA was called are the runtime's; there are none.
        real = within(known + self.waits["next"], since, until) - before
        told = sum(row["data_ms"] for row in rows) * 1e6
        self.assertAlmostEqual(told, real, delta=0.01 * real)

    def test_utilisation_is_that_of_the_ground_truth(self):
        rows, start = self.steps["steps"][1:], self.run_.start_ns()
        since = start + min(row["start_ms"] for row in rows) * 1e6
        until = start + max(row["start_ms"] + row["duration_ms"] for row in rows) * 1e6
        kernels = [(op.start, op.end) for op in self.run_.truth.ops("kernel")]
        real = 100 * within(kernels, since, until) / (until - since)
        self.assertAlmostEqual(self.steps["gpu_utilization_percent"], real, delta=0.01 * real)

    def test_the_gaps_are_the_loaders_and_the_advice_names_it(self):
        loader = scenario.site("starving.py", "loader")
        gaps = [row for row in self.run_.gaps["gaps"] if row["cause"] == "data"]
        self.assertEqual(gaps[0]["culprit"]["line"], loader)
        advice = [item for item in self.run_.ask("report")["summary"]["advice"]
                  if "num_workers" in json.dumps(item)]
        self.assertEqual(len(advice), 1, self.run_.ask("report")["summary"])
        self.assertIn(f"starving.py:{loader}", json.dumps(advice))


if __name__ == "__main__":
    unittest.main()
