#!/usr/bin/env python3
"""Busy and idle time of traces of real GPUs beside what HTA 0.5 makes of them
(tests/peers/install). Skips traces that are not at hand: see import_test.py."""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
import import_test
from import_test import TRACES

VENV = os.environ.get("LULL_PEERS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lull", "peers")
# Those that HTA reads whole. Not among them: traces of several devices; with categories of
# before 2022; a100_negative_queue (it leaves out what has no launch); a100_event_sync (it
# counts rows of cuda_sync as work) and b200_eager (and operators of Triton that name a stream).
SAME = ("tracelens/h100_owlv2", "tracelens/h100_nsfw", "tracelens/mi300_nsfw", "hta/a100_nccl",
        "kineto/v100_resnet50_workers_0", "particle_transformer/a100_batch_2",
        "particle_transformer/a100_batch_32", "particle_transformer/a100_batch_512")


def hta(*paths, rounding):
    done = subprocess.run(
        [os.path.join(VENV, "bin", "python"), os.path.join(HERE, "hta_idle.py"), *paths],
        env={**os.environ, "HTA_DISABLE_NS_ROUNDING": str(int(not rounding))},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


class Hta(import_test.Import):
    def test_idle_time_is_the_same(self):
        here = [name for name in SAME if os.path.exists(os.path.join(TRACES, name + ".json.gz"))]
        if not here:
            self.skipTest(f"skipped: none of its traces is in {TRACES}")
        for name in here:
            with self.subTest(name):
                path = os.path.join(TRACES, name + ".json.gz")
                gpu = self.ask("gaps", self.job_of(path))["gpu"]
                exact = hta(path, rounding=False)
                # It counts in doubles of 1.6e15 us, which are a quarter of a us apart, or of
                # less where the trace has a base.
                self.assertAlmostEqual(gpu["idle_ms"] * 1e3, exact["idle_us"], delta=0.5)
                self.assertAlmostEqual(gpu["busy_ms"] * 1e3, exact["busy_us"], delta=0.5)
                # It cuts both ends of an operation to whole microseconds, inward.
                operations = gpu["kernels"] + gpu["copies"] + gpu["memsets"]
                rounded = hta(path, rounding=True)
                self.assertGreaterEqual(rounded["idle_us"], gpu["idle_ms"] * 1e3 - 2)
                self.assertLessEqual(rounded["idle_us"], gpu["idle_ms"] * 1e3 + 2 * operations)

    @import_test.real("tracelens/h100_owlv2.json.gz")
    def test_an_export_reads_the_same(self):
        job = self.job_of(os.path.join(TRACES, "tracelens/h100_owlv2.json.gz"))
        path = os.path.join(self.folder.name, "export.json.gz")
        self.lull("export", job, "-o", path)
        gpu, theirs = self.ask("gaps", job)["gpu"], hta(path, rounding=False)
        self.assertAlmostEqual(gpu["idle_ms"] * 1e3, theirs["idle_us"], delta=0.5)
        self.assertAlmostEqual(gpu["busy_ms"] * 1e3, theirs["busy_us"], delta=0.5)

    @import_test.real(*(f"param/v100_dlrm_rank{rank}.json.gz" for rank in range(8)))
    def test_communication_that_computation_covers_is_the_same(self):
        paths = [os.path.join(TRACES, f"param/v100_dlrm_rank{rank}.json.gz")
                 for rank in range(8)]
        theirs = hta(*paths, rounding=False)
        rows = self.ask("ranks", self.job_of(*paths))["ranks"]
        self.assertEqual(len(rows), len(theirs))
        for row in rows:
            covered = 100 * (1 - row["exposed_ms"] / row["communication_ms"])
            self.assertAlmostEqual(covered, theirs[str(row["rank"])], delta=0.01)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["-v"]))
