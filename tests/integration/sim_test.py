#!/usr/bin/env python3
"""Trainers on the simulated device under `lull run`: what lull reports is what the
ground truth says. Call counts and source lines are exact, blocked time is within
2 %, for programs built by nvcc and by the host compiler, and for Python."""

import os
import sys
import tempfile
import unittest

import guest
import interpreters

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tests", "sim"),
                os.path.join(ROOT, "tools", "demo_job")]
import checks
import expected
import truth

BUILT = os.environ["LULL_PUPPETS"]
SIM = os.environ["LULL_SIM"]
E = expected.expected()

# Where each trainer synchronises: (api, SITE of the source) -> calls, and the
# function that holds the line.
SYNCS = {
    ("cudaMemcpyAsync", "pageable_upload"): ("load_batch", E["kPageableUploads"]),
    ("cudaMemcpyAsync", "loss_copy"): ("loss_item", E["kLossReads"]),
    ("cudaStreamSynchronize", "loss_sync"): ("loss_item", E["kLossReads"]),
    ("cudaDeviceSynchronize", "device_sync"): ("log_metrics", E["kDeviceSyncs"] - 1),
}


def trainers():
    """{name: (command, source, name of the function `f` as lull shows it)}"""
    found = {}
    for flavour in ("trainer_nvcc", "trainer_host12", "trainer_host13"):
        path = os.path.join(BUILT, flavour)
        if os.path.exists(path):
            found[flavour] = ([path], "trainer.cu", lambda f: f)
    script = os.path.join(PUPPETS, "trainer.py")
    for series, python in interpreters.with_test_suite().items():
        qualified = int(series.split(".")[1]) >= 11
        found[f"python{series}"] = ([python, script], "trainer.py",
                                    lambda f, q=qualified: "Trainer." + f if q else f)
    return found


class Run:
    """One run of a trainer, what lull says of it, and what really happened."""

    def __init__(self, host, name, command):
        with tempfile.TemporaryDirectory(prefix="lull-truth-") as folder:
            log = os.path.join(folder, "truth")
            # Kernels of half a millisecond: the device is always behind, so every
            # wait for it is a real one.
            self.done = guest.execute(
                [guest.LULL, "run", "--quiet", "--name", name, "--", *command],
                {**host.environment, "LD_LIBRARY_PATH": SIM, "LULL_SIM_LOG": log,
                 "LULL_SIM_CONFIG": "kernel_us=500"})
            self.truth = truth.load(log)
        self.syncs, self.allocs, self.waits = (
            checks.query(guest.LULL, verb, name) for verb in ("syncs", "allocs", "waits"))

    def sync_rows(self):
        return {(row["api"], row["site"]["line"]): row for row in self.syncs["sync_points"]}


def blocking_calls(run, api):
    """The calls of a function that the device may keep waiting, of the ground truth."""
    pageable = {op.correlation for op in run.truth.ops("copy") if op.pageable}
    return [call for call in run.truth.calls(api)
            if api != "cudaMemcpyAsync" or call.correlation in pageable]


def blocked_times_off(run):
    """{function: (ms off, ms allowed, ms of the truth)} of those whose time is not the truth's."""
    wrong = {}
    for api in ("cudaMemcpyAsync", "cudaStreamSynchronize", "cudaDeviceSynchronize",
                "cudaEventSynchronize"):
        calls = blocking_calls(run, api)
        real = sum(call.duration for call in calls) / 1e6
        off = abs(real - sum(row["blocked_ms"] for row in run.syncs["sync_points"]
                             if row["api"] == api))
        # Where nothing is left to wait for, a call takes microseconds: allow 10 each.
        allowed = 0.02 * real + 0.01 * len(calls)
        if off > allowed:
            wrong[api] = (off, allowed, real)
    return wrong


def for_each_trainer(check):
    """Makes a test of check(self, run, source, name of a function as lull shows it)."""

    def test(self):
        self.assertIn("trainer_host13", self.runs)
        self.assertTrue(any(name.startswith("python") for name in self.runs))
        for name, (_, source, function) in self.trainers.items():
            with self.subTest(trainer=name):
                run = self.runs[name]
                self.assertEqual(run.done.status, 0, run.done.stderr)
                check(self, run, source, function)

    return test


class SimulatedDevice(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        cls.trainers = trainers()
        cls.runs = {name: Run(cls.host, name, command)
                    for name, (command, _, _) in cls.trainers.items()}

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    @for_each_trainer
    def test_every_sync_point_has_its_exact_count_line_and_function(self, run, source, function):
        rows = run.sync_rows()
        for (api, site), (name, calls) in SYNCS.items():
            line = expected.site(source, site)
            self.assertIn((api, line), rows, site)
            row = rows[api, line]
            self.assertEqual(row["calls"], calls, site)
            self.assertEqual(os.path.basename(row["site"]["file"]), source)
            self.assertEqual(row["site"]["function"].split("(")[0], function(name))

    @for_each_trainer
    def test_calls_per_function_are_those_of_the_ground_truth(self, run, _source, _function):
        for api in ("cudaStreamSynchronize", "cudaDeviceSynchronize",
                    "cudaEventSynchronize"):
            reported = sum(row["calls"] for row in run.syncs["sync_points"]
                           if row["api"] == api)
            self.assertEqual(reported, len(run.truth.calls(api)), api)

    @for_each_trainer
    def test_blocked_time_is_within_two_percent_of_the_ground_truth(self, run, _source, _function):
        # A thread that loses its processor between lull's clock and the device's makes
        # a difference that is nobody's error, and other programs take it in one run or another;
        # an error of lull's is in every run. So each function has to be right in one of three.
        name = next(name for name, ours in self.runs.items() if ours is run)
        wrong = blocked_times_off(run)
        for again in ("again", "once more"):
            if wrong:
                print(f"{name}, {again}, for {sorted(wrong)}", file=sys.stderr)
                repeated = Run(self.host, f"{name}_{again.replace(' ', '_')}",
                               self.trainers[name][0])
                self.assertEqual(repeated.done.status, 0, repeated.done.stderr)
                now = blocked_times_off(repeated)
                wrong = {api: now[api] for api in wrong if api in now}
        for api, (off, allowed, real) in wrong.items():
            self.assertLessEqual(off, allowed, f"{api}: {real} ms")
        pageable = blocking_calls(run, "cudaMemcpyAsync")
        self.assertGreater(sum(call.duration for call in pageable) / 1e6, 100)  # it is a test

    @for_each_trainer
    def test_a_pageable_copy_is_a_sync_and_a_pinned_one_is_not(self, run, source, _function):
        rows = run.sync_rows()
        pageable = rows["cudaMemcpyAsync", expected.site(source, "pageable_upload")]
        self.assertEqual(pageable["calls"], E["kPageableUploads"])
        self.assertEqual(pageable["bytes"], E["kPageableUploads"] * E["kBatchBytes"])
        self.assertNotIn(("cudaMemcpyAsync", expected.site(source, "pinned_upload")), rows)

    @for_each_trainer
    def test_device_memory_is_counted_at_its_line(self, run, source, _function):
        # In Python all of them go through one line of Trainer.malloc().
        site, calls = (("workspace_malloc", E["kWorkspaces"]) if source == "trainer.cu"
                       else ("malloc", E["kWorkspaces"] + E["kSetupAllocations"]))
        rows = [row for row in run.allocs["allocation_sites"] if row["allocator"] == "cuda"
                and row["site"]["line"] == expected.site(source, site)]
        self.assertEqual(sum(row["calls"] for row in rows), calls)
        total = sum(row["calls"] for row in run.allocs["allocation_sites"]
                    if row["allocator"] == "cuda")
        self.assertEqual(total, E["kWorkspaces"] + E["kSetupAllocations"])
        self.assertEqual([row["live_bytes"] for row in rows], [0] * len(rows))

    @for_each_trainer
    def test_the_blocking_of_free_is_within_two_percent(self, run, source, _function):
        calls = run.truth.calls("cudaFree")[:E["kWorkspaces"]]
        real = sum(call.duration for call in calls) / 1e6
        self.assertGreater(real, 5 * E["kWorkspaces"])  # it waits for the device
        rows = [row for row in run.allocs["allocation_sites"]
                if row["site"]["line"] == expected.site(source, "workspace_free")]
        reported = sum(row["blocked_ms"] for row in rows)
        self.assertLessEqual(abs(reported - real), 0.02 * real, f"{real} ms")

    @for_each_trainer
    def test_the_time_of_malloc_is_reported(self, run, _source, _function):
        # Not compared from above: the first call brings the simulated device up, which
        # its own log does not count.
        real = sum(call.duration for call in run.truth.calls("cudaMalloc")) / 1e6
        reported = sum(row["blocked_ms"] for row in run.allocs["allocation_sites"]
                       if row["allocator"] == "cuda" and row["calls"] > 0)
        self.assertGreaterEqual(reported, 0.98 * real)

    @for_each_trainer
    def test_nothing_is_lost(self, run, _source, _function):
        self.assertEqual(run.syncs["losses"]["events_lost"], 0)
        self.assertEqual(run.syncs["losses"]["events_committed"],
                         run.syncs["losses"]["events_stored"])


if __name__ == "__main__":
    unittest.main()
