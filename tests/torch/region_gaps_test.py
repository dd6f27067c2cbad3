#!/usr/bin/env python3
"""Idle time and samples know their region: PyTorch's record_function and NVTX, nested, with
launches on the simulated device between them. The program's own clock says how long each
region held the device up."""

import json
import os
import unittest

from scenario import Scenario, TorchCase, guest, python

SECONDS = 6.0
# Of a region that was entered some hundred times: launches, clocks, and a region's own
# begin and end lie in the idle time and not in the program's.
ALLOWED, ALLOWED_MS = 0.12, 25


class RegionGaps(TorchCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        cls.run_ = Scenario(cls.host, "regions", python("region_gaps.py", str(SECONDS)))

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def setUp(self):
        self.assert_ran(self.run_)
        self.spent = {path: 1e3 * seconds
                      for path, seconds in json.loads(self.run_.done.stdout).items()}

    def ask(self, verb, *options):
        return self.run_.ask(verb, *options)

    def assert_time(self, told_ms, path):
        own_ms = self.spent[path]
        self.assertAlmostEqual(told_ms, own_ms, delta=ALLOWED * own_ms + ALLOWED_MS, msg=path)

    def idle_by_region(self):
        told = {}
        for row in self.ask("gaps")["gaps"]:
            left = row["total_ms"]
            for region in row["regions"]:
                path = "/".join([*region["path"], region["name"]])
                told[path] = told.get(path, 0) + region["total_ms"]
                left -= region["total_ms"]
                self.assertAlmostEqual(region["share_percent"],
                                       100 * region["total_ms"] / row["total_ms"], places=6)
            told[""] = told.get("", 0) + left
        return told

    def test_each_row_says_in_which_region_it_lies(self):
        told = self.idle_by_region()
        self.assertEqual(set(told) - {""}, set(self.spent) - {""})
        for path in set(self.spent) - {""}:
            self.assert_time(told[path], path)

    def test_a_region_that_is_asked_for_has_those_within(self):
        for name in ("load", "decode", "step", "forward", "attention"):
            answer = self.ask("gaps", "--region", name)
            self.assertEqual(answer["region"], name)
            told = sum(row["total_ms"] for row in answer["gaps"])
            self.assertAlmostEqual(told, sum(row["total_ms"] for row in answer["causes"]), places=3)
            paths = [path for path in self.spent if name in path.split("/")]
            own = sum(self.spent[path] for path in paths)
            self.assertAlmostEqual(told, own, delta=ALLOWED * own + ALLOWED_MS, msg=name)
            for row in answer["gaps"]:
                for region in row["regions"]:
                    self.assertIn(name, [*region["path"], region["name"]])

    def test_hot_of_a_region_has_what_ran_in_it(self):
        whole = self.ask("hot")
        inside = {name: self.ask("hot", "--region", name)
                  for name in ("load", "decode", "attention")}

        def samples(answer, function):
            return sum(row["self_samples"] for row in answer["lines"]
                       if row["function"] == function)

        # work() is called in two regions and outside of any.
        self.assertGreater(samples(whole, "work"), samples(inside["decode"], "work")
                           + samples(inside["attention"], "work"))
        self.assertGreater(samples(inside["decode"], "work"), 30)
        self.assertEqual(samples(inside["decode"], "nap"), 0)
        self.assertGreater(samples(inside["load"], "nap"), 0)
        main = {name: sum(role["time_ms"] for role in answer["roles"] if role["role"] == "main")
                for name, answer in inside.items()}
        for name, paths in (("decode", ["load/decode"]), ("load", ["load", "load/decode"])):
            own = sum(self.spent[path] for path in paths)
            # As many samples as there are make so much chance, 4 deviations.
            count = sum(role["samples"] for role in inside[name]["roles"])
            self.assertAlmostEqual(main[name] / own, 1, delta=0.1 + 4 * count ** -0.5, msg=name)

    def test_a_region_that_is_not_there_is_an_error(self):
        done = guest.execute([guest.LULL, "gaps", "regions", "--region", "nowhere"],
                             self.host.environment)
        self.assertEqual((done.status, done.stdout), (1, ""))
        self.assertIn("no region of this job is called nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
