#!/usr/bin/env python3
"""`lull ranks` of imported traces: which rank the others waited for, by the kernels of NCCL
that end together; made-up traces, and those of eight V100 where they are at hand."""

import gzip
import json
import os
import sys
import unittest

import import_test
from import_test import TRACES, call, kernel, real, trace

ALL_REDUCE = "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"
PARAM = [f"param/v100_dlrm_rank{rank}.json.gz" for rank in range(8)]


def rank_of(rank, late, ranks=4, steps=60, apart=0):
    """In every fifth step rank `late` computes 300 us longer. Ends are `apart` us apart. All
    compute, so that few such steps may be chance."""
    events = []
    for step in range(steps):
        begin, more = 2000 * step, 300 if step % 5 == 4 else 0
        came = begin + 500 + (more if rank == late else 0)
        number = 2 * step + 1
        events += [call("cudaLaunchKernel", begin, begin + 5, number),
                   kernel("compute", begin + 10, came - 5, number),
                   call("cudaLaunchKernel", begin + 10, begin + 15, number + 1),
                   kernel(ALL_REDUCE, came, begin + 500 + more + 50 + apart * rank, number + 1,
                          stream=20)]
    return trace(events, distributedInfo={"backend": "nccl", "rank": rank,
                                          "world_size": ranks})


class Ranks(import_test.Import):
    def job_of_ranks(self, name, traces):
        paths = [self.write(f"{name}/rank{i}.json", each) for i, each in enumerate(traces)]
        return self.job_of(*paths)

    def test_the_late_rank_is_named(self):
        answer = self.ask("ranks", self.job_of_ranks(
            "late", [rank_of(rank, late=2) for rank in range(4)]))
        self.assertEqual(answer["clock"], {"error_ns": 0, "error_kind": "fiducial"})
        self.assertTrue(answer["on_device"])
        self.assertEqual(answer["collectives"], 60)
        first, *others = answer["ranks"]
        self.assertEqual((first["rank"], first["late_steps"]), (2, 12))
        self.assertEqual([c["cause"] for c in first["culprits"]], ["gpu"])
        self.assertAlmostEqual(first["cost_to_others_ms"], 3 * 12 * 0.3, delta=1e-6)
        self.assertTrue(all(row["cost_to_others_ms"] == 0 for row in others))
        self.assertAlmostEqual(first["communication_ms"], 60 * 0.05, delta=1e-6)
        for row in others:
            self.assertAlmostEqual(row["waited_ms"], 12 * 0.3, delta=1e-6)
            self.assertAlmostEqual(row["exposed_ms"], 60 * 0.05 + 12 * 0.3, delta=1e-6)

    def test_nobody_is_named_for_less_than_ends_are_apart(self):
        answer = self.ask("ranks", self.job_of_ranks(
            "apart", [rank_of(rank, late=2, apart=200) for rank in range(4)]))
        self.assertEqual(answer["clock"], {"error_ns": 600_000, "error_kind": "fiducial"})
        self.assertEqual([row["culprits"] for row in answer["ranks"]], [[]] * 4)

    def test_ranks_that_do_not_do_the_same_are_not_compared(self):
        job = self.job_of_ranks("different", [rank_of(rank, late=2, steps=60 - rank)
                                              for rank in range(4)])
        self.assertIn("not the same kernels", self.lull("ranks", job, status=1).stderr)

    def test_a_rank_that_is_not_there_may_be_the_late_one(self):
        job = self.job_of_ranks("missing", [rank_of(rank, late=2) for rank in range(3)])
        self.assertIn("3 of 4 ranks", self.lull("ranks", job, status=1).stderr)

    @real(*PARAM)
    def test_eight_v100_of_a_dlrm(self):
        paths = [os.path.join(TRACES, name) for name in PARAM]
        communication = []  # of each rank: (start, end) in us
        exposed = []
        for path in paths:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                events = [e for e in json.load(file)["traceEvents"]
                          if e.get("cat", "").lower() == "kernel"]
            ours = sorted((e["ts"], e["ts"] + e["dur"]) for e in events
                          if e["name"].startswith("ncclKernel"))
            computing = {us for e in events if not e["name"].startswith("ncclKernel")
                         for us in range(e["ts"], e["ts"] + e["dur"])}
            communication.append(ours)
            exposed.append(sum(us not in computing for a, b in ours for us in range(a, b)))
        answer = self.ask("ranks", self.job_of(*paths))
        self.assertEqual((answer["world_size"], answer["collectives"]), (8, 8))
        spread = max(max(r[i][1] for r in communication) - min(r[i][1] for r in communication)
                     for i in range(8))
        self.assertEqual(answer["clock"], {"error_ns": spread * 1000, "error_kind": "fiducial"})
        self.assertLess(spread, 10)
        last = [max(r[i][0] for r in communication) for i in range(8)]
        for row in answer["ranks"]:
            own = communication[row["rank"]]
            with self.subTest(row["rank"]):
                self.assertAlmostEqual(row["communication_ms"] * 1e3,
                                       sum(b - a for a, b in own), delta=1)
                self.assertAlmostEqual(row["exposed_ms"] * 1e3, exposed[row["rank"]], delta=2)
                self.assertAlmostEqual(
                    row["waited_ms"] * 1e3,
                    sum(min(last[i], own[i][1]) - own[i][0] for i in range(8)), delta=8)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["Ranks", "-v"]))
