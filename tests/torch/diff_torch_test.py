#!/usr/bin/env python3
"""Five runs a side of a training with TorchMetrics as most people use it, and mended: what
`lull diff` says of them. The syncs are exact; whether the steps are faster is for the machine's
noise to let it say."""

import json
import re
import unittest

import scenario
from scenario import TorchCase, guest, installed, python

RUNS, STEPS = 5, 40


class NaiveAgainstMended(TorchCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        for _ in range(RUNS):  # A B A B: what changes on the machine meets both
            for tag, *options in (("naive",), ("mended", "--fixed")):
                done = guest.execute(
                    [guest.LULL, "run", "--quiet", "--tag", tag, "--gpu", "continuous",
                     "--overhead-budget", "100", "--",
                     *python("metrics.py", "--steps", str(STEPS), *options)],
                    {**cls.host.environment, "LULL_SIM_CONFIG": scenario.CONFIG}, timeout=900)
                assert done.status == 0, done.stderr
        aggregation = installed("torchmetrics.aggregation")
        update = scenario.line_of(aggregation, "class MeanMetric")
        cls.weight = scenario.line_of(aggregation, "weight = torch.as_tensor(weight", update)
        cls.nan = scenario.line_of(aggregation, "if nans.any() or nans_weight.any()")

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def diff(self, *options):
        done = guest.execute([guest.LULL, "diff", "tag:naive", "tag:mended", *options],
                             self.host.environment)
        self.assertEqual((done.status, done.stderr), (0, ""))
        return done.stdout

    def test_the_two_lines_are_named_and_a_time_only_where_it_is_proven(self):
        answer = json.loads(self.diff("--json"))
        self.assertEqual(answer["reasons"], [])
        self.assertEqual((len(answer["a"]), len(answer["b"])), (RUNS, RUNS))
        syncs = answer["sync_points"]
        self.assertEqual((syncs["new"], syncs["changed"]), ([], []))
        self.assertEqual(sorted((row["site"]["line"], row["api"], row["a_calls_per_step"],
                                 row["b_calls_per_step"]) for row in syncs["gone"]),
                         sorted([(self.weight, "cudaMemcpyAsync", 1, 0),
                                 (self.weight, "cudaStreamSynchronize", 1, 0),
                                 (self.nan, "cudaStreamSynchronize", 2, 0)]))
        first = self.diff().splitlines()[0]
        self.assertRegex(first, r"two syncs gone \(torchmetrics/aggregation\.py:\d+, :\d+\)")
        lines = re.search(r"aggregation\.py:(\d+), :(\d+)\)", first).groups()
        self.assertEqual(set(map(int, lines)), {self.weight, self.nan})
        self.assertNotEqual(answer["verdict"], "slower")
        step = answer["step_ms"]
        if answer["verdict"] == "faster":
            self.assertRegex(first, r"^B is [\d.]+ % ± [\d.]+ faster; ")
            self.assertLess(step["high_percent"], 0)
        else:
            self.assertEqual(answer["verdict"], "syncs_changed")
            # None: more than a thousand, on a machine as busy as that.
            self.assertGreater(step["runs_needed"] or 1001, RUNS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
