#!/usr/bin/env python3
"""`lull ops` of a program whose functions have the names of PyTorch's dispatcher: operators,
those around them and a node of the backward graph, with exact counts and times."""

import os
import sys
import unittest

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tools", "demo_job")]
import checks

PROGRAM = os.path.join(os.environ.get("LULL_PUPPETS", os.path.join(ROOT, "build/tests/puppets")),
                       "operators_host13")
STEPS = 10
KERNEL_MS = 0.1


class Operators(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        cls.done = cls.run_program("traced", "continuous")

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    @classmethod
    def run_program(cls, name, gpu):
        return guest.execute(
            [guest.LULL, "run", "--quiet", "--gpu", gpu, "--overhead-budget", "100",
             "--name", name, "--", PROGRAM],
            {**cls.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "LULL_SIM_CONFIG": f"kernel_us={1000 * KERNEL_MS:.0f}"}, timeout=100)

    def ask(self, name, *options):
        return checks.query(guest.LULL, "ops", name, *options)

    def test_counts_and_times_are_exact(self):
        self.assertEqual(self.done.status, 0, self.done.stderr)
        answer = self.ask("traced")
        rows = {row["name"]: row for row in answer["ops"]}
        # name: (pass, own launches, launches) of a step; addmm launches two kernels, is
        # called by linear and alone; the node calls mm twice.
        expected = {"aten::addmm": ("unknown", 4, 4), "aten::linear": ("unknown", 0, 2),
                    "aten::mm": ("backward", 2, 2), "AddmmBackward0": ("backward", 0, 2)}
        self.assertEqual({name: (row["pass"], row["own_launches"], row["launches"])
                          for name, row in rows.items()},
                         {name: (where, own * STEPS, total * STEPS)
                          for name, (where, own, total) in expected.items()})
        for row in rows.values():
            self.assertAlmostEqual(row["own_gpu_ms"], row["own_launches"] * KERNEL_MS, delta=0.5)
            self.assertAlmostEqual(row["gpu_ms"], row["launches"] * KERNEL_MS, delta=0.5)
            self.assertIsNone(row["calls"])
        self.assertEqual([row["name"] for row in answer["ops"]][:2], ["aten::addmm", "aten::mm"])
        self.assertEqual(answer["total_launches"], 7 * STEPS)
        self.assertEqual(answer["unknown_launches"], STEPS)
        self.assertAlmostEqual(answer["unknown_gpu_ms"], STEPS * KERNEL_MS, delta=0.5)
        own = sum(row["own_gpu_percent"] for row in rows.values())
        self.assertAlmostEqual(own, 100 * 6 / 7, delta=2)

    def test_without_gpu_truth_nothing_is_told(self):
        self.assertEqual(self.run_program("untraced", "host").status, 0)
        answer = self.ask("untraced")
        self.assertEqual(answer["ops"], [])
        self.assertIsNone(answer["total_gpu_ms"])
        self.assertIsNotNone(answer["gpu"]["missing"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
