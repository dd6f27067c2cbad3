#!/usr/bin/env python3
"""`lull ops` against torch.profiler, on the same training in two processes: the operators
that make the GPU do something, how many operations each makes it do, for how long, in which
pass, and their order."""

import json
import os
import unittest

from scenario import Scenario, TorchCase, guest, python

SCRIPT = "operators.py"


class Operators(TorchCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        cls.run_ = Scenario(cls.host, "operators", python(SCRIPT))
        cls.ops = cls.run_.ask("ops")
        cls.profiled = guest.execute(
            python(SCRIPT, "profile"),
            {**cls.host.environment, "LULL_SIM_CONFIG": "zero_reads_kib=4"}, timeout=900)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def setUp(self):
        self.assert_ran(self.run_)
        self.assert_nothing_lost(self.run_)
        self.assertEqual(self.profiled.status, 0, self.profiled.stderr)
        self.theirs = {(name, where): row
                       for name, where, *row in json.loads(self.profiled.stdout)}
        self.ours = {(row["name"], row["pass"]): row for row in self.ops["ops"]
                     if row["launches"] > 0}

    def test_every_operation_has_an_operator(self):
        self.assertEqual(self.ops["unknown_launches"], 0)
        self.assertEqual(self.ops["total_launches"],
                         sum(len(self.run_.truth.ops(kind)) for kind in ("kernel", "copy", "memset")))

    def test_operators_and_their_operations_are_those_of_the_profiler(self):
        self.assertGreater(len(self.theirs), 20)
        self.assertEqual({key: (row["own_launches"], row["launches"])
                          for key, row in self.ours.items()},
                         {key: (row[0], row[2]) for key, row in self.theirs.items()})

    def test_times_and_order_are_those_of_the_profiler(self):
        for key, row in self.ours.items():
            self.assertAlmostEqual(row["own_gpu_ms"], self.theirs[key][1] / 1e3,
                                   delta=0.02 * row["own_gpu_ms"] + 0.002 * row["own_launches"],
                                   msg=str(key))
        # Times of the simulated device are exact to a microsecond; what differs by less
        # than that has no order.
        ranks = [self.theirs[row["name"], row["pass"]][1] for row in self.ops["ops"]
                 if row["own_launches"] > 0]
        for before, after in zip(ranks, ranks[1:]):
            self.assertGreaterEqual(before * 1.02, after)

    def test_all_three_passes_are_told_apart(self):
        self.assertEqual({row["pass"] for row in self.ops["ops"]},
                         {"forward", "backward", "optimizer"})
        self.assertIn(("AddmmBackward0", "backward"), self.ours)
        self.assertTrue(any(name.startswith("aten::_foreach_") and where == "optimizer"
                            for name, where in self.ours))

    def test_every_byte_that_has_a_line_has_an_operator(self):
        self.assertGreater(self.ops["allocated_bytes"], 1 << 20)
        own = sum(row["own_allocated_bytes"] or 0 for row in self.ops["ops"])
        rows = [row for row in self.run_.allocs["allocation_sites"]
                if row["allocator"] == "torch_cuda"]
        told = sum(row["bytes"] for row in rows)
        self.assertEqual(own, told)
        # Never all, where some blocks stand for others.
        estimated = any(row["estimated"] for row in self.ops["ops"])
        self.assertEqual(self.ops["known_bytes"],
                         min(own, self.ops["allocated_bytes"] - estimated))
        # Small tensors are estimated: four times the deviation of all of them.
        small = sum(row["bytes"] for row in rows if row["estimated"])
        self.assertLess(abs(own - self.ops["allocated_bytes"]),
                        4 * ((small + (1 << 20)) * (512 << 10)) ** 0.5)

    def test_nothing_is_said_of_calls(self):
        self.assertEqual({row["calls"] for row in self.ops["ops"]}, {None})


if __name__ == "__main__":
    unittest.main(verbosity=2)
