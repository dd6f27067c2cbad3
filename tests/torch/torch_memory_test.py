#!/usr/bin/env python3
"""`lull memory` of the CUDA build of PyTorch, against PyTorch's own statistics: live and
reserved bytes at the end of every step, peaks, the retry; all to the byte."""

import json
import os
import unittest

import scenario
from scenario import Scenario, TorchCase, guest, python


class MemoryOfPyTorch(TorchCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        cls.run_ = Scenario(cls.host, "growing", python("growing.py"), "memory_gib=1",
                            gpu="host")

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def setUp(self):
        self.assert_ran(self.run_)
        self.told = json.loads(self.run_.done.stdout)
        self.memory = self.run_.ask("memory")
        (self.row,) = [row for row in self.memory["memory"] if row["allocator"] == "torch_cuda"]

    def test_at_the_end_of_every_step(self):
        self.assertEqual([(p["live_bytes"], p["reserved_bytes"]) for p in self.row["points"]],
                         [(s["live"], s["reserved"]) for s in self.told["steps"]])

    def test_peaks_and_ends(self):
        end = self.told["end"]
        self.assertEqual((self.row["device"], self.row["live_bytes"], self.row["peak_bytes"]),
                         (0, end["live"], end["peak"]))
        self.assertEqual((self.row["reserved_bytes"], self.row["reserved_peak_bytes"]),
                         (end["reserved"], end["reserved_peak"]))
        sites = {s["site"]["line"]: s["bytes"] for s in self.row["peak_sites"]}
        self.assertEqual(sites[scenario.site("growing.py", "large")], 600 << 20)
        self.assertEqual(sites[scenario.site("growing.py", "kept")], 70 * (2 << 20))
        # Forward and backward work of one line are two sites; small blocks are estimated.
        exact = sum(s["bytes"] for s in self.row["peak_sites"] if not s["estimated"])
        self.assertLessEqual(exact, end["peak"])
        self.assertLess(end["peak"] - exact, 1 << 20)
        told = sum(s["bytes"] for s in self.row["peak_sites"])
        self.assertEqual(self.row["peak_others_bytes"], max(0, end["peak"] - told))

    def test_growth_and_its_line(self):
        growth = self.row["growth"]
        self.assertEqual(growth["bytes_per_step"], 2 << 20)
        self.assertEqual(growth["sites"][0]["site"]["line"],
                         scenario.site("growing.py", "kept"))

    def test_the_retry(self):
        self.assertEqual(self.told["end"]["retries"], 1)
        (retries,) = self.memory["malloc_retries"]
        self.assertEqual((retries["failed_calls"], retries["retries"], retries["succeeded"]),
                         (1, 1, 1))
        self.assertEqual(retries["site"]["line"], scenario.site("growing.py", "large"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
