#!/usr/bin/env python3
"""A program with a CUDA runtime of its own, as nvcc links by default: no function of the
runtime can be hooked, so lull sees the driver's functions that the runtime asks
cuGetProcAddress for. They are told with the lines of the program."""

import collections
import os
import sys
import tempfile
import unittest

import guest

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
# The device is always behind, so every wait for it is a real one.
SIMULATED = {"LD_LIBRARY_PATH": SIM, "LULL_SIM_CONFIG": "kernel_us=500"}

SYNCS = {
    ("cuMemcpyHtoDAsync_v2", "pageable_upload", "load_batch"): E["kPageableUploads"],
    ("cuMemcpyDtoHAsync_v2", "loss_copy", "loss_item"): E["kLossReads"],
    ("cuStreamSynchronize", "loss_sync", "loss_item"): E["kLossReads"],
    ("cuCtxSynchronize", "device_sync", "log_metrics"): E["kDeviceSyncs"] - 1,
    ("cuCtxSynchronize", "last_sync", "main"): 1,
    ("cuEventSynchronize", "event_sync", "main"): E["kEventSyncs"],
}


def line(site):
    return expected.site("trainer.cu", site)


class StaticRuntime(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.addClassCleanup(cls.host.close)
        os.environ.update(cls.host.environment)
        with tempfile.TemporaryDirectory(prefix="lull-truth-") as folder:
            log = os.path.join(folder, "truth")
            cls.done = guest.execute(
                [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--overhead-budget", "100",
                 "--name", "static", "--", os.path.join(BUILT, "trainer_static")],
                {**cls.host.environment, **SIMULATED, "LULL_SIM_LOG": log})
            cls.truth = truth.load(log)
        cls.report, cls.syncs, cls.allocs, cls.kernels, cls.gaps = (
            checks.query(guest.LULL, verb, "static")
            for verb in ("report", "syncs", "allocs", "kernels", "gaps"))

    def driver_calls(self, *names):
        """The calls that the program's runtime made."""
        return [call for call in self.truth.calls(nested=True)
                if call.name in names and call.depth == 1]

    def test_it_ran_and_nothing_was_lost(self):
        self.assertEqual(self.done.status, 0, self.done.stderr)
        self.assertEqual(len(self.truth.calls("cudaLaunchKernel")), E["kKernels"])
        losses = self.syncs["losses"]
        self.assertEqual((losses["events_lost"], losses["reentered"]), (0, 0))

    def test_it_does_not_notice(self):
        self.host.check_unnoticed(self, [os.path.join(BUILT, "trainer_static")], status=0,
                                  normalise=lambda text: text.split(", last step")[0],
                                  env=SIMULATED)

    def test_waits_have_the_lines_of_the_program(self):
        told = collections.Counter()
        for row in self.syncs["sync_points"]:
            site = row["site"]
            self.assertEqual(os.path.basename(site["file"]), "trainer.cu", row)
            told[row["api"], site["line"], site["function"].partition("(")[0]] += row["calls"]
        self.assertEqual(told, {(api, line(site), function): calls
                                for (api, site, function), calls in SYNCS.items()})

    def test_the_time_that_they_blocked_is_the_real_one(self):
        for api in {api for api, _, _ in SYNCS if "Synchronize" in api}:
            calls = self.driver_calls(api)
            real = sum(call.duration for call in calls) / 1e6
            told = sum(row["blocked_ms"] for row in self.syncs["sync_points"] if row["api"] == api)
            self.assertLessEqual(abs(told - real), 0.02 * real + 0.01 * len(calls), api)

    def test_launches_are_counted_and_have_their_lines(self):
        launches = sum(row["launches"] for row in self.report["processes"])
        self.assertEqual(launches, len(self.driver_calls("cuLaunchKernel")))
        self.assertEqual(launches, E["kKernels"])
        self.assertEqual(
            {row["name"]: (row["calls"], row["site"]["line"]) for row in self.kernels["kernels"]},
            {"forward_kernel": (E["kSteps"] * E["kForwardKernels"], line("forward")),
             "backward_kernel": (E["kSteps"] * E["kBackwardKernels"], line("backward")),
             "optimizer_kernel": (E["kSteps"] * E["kOptimizerKernels"], line("optimizer"))})

    def test_allocations_are_counted_and_have_their_lines(self):
        rows = self.allocs["allocation_sites"]
        self.assertEqual(sum(row["calls"] for row in rows),
                         len(self.driver_calls("cuMemAlloc_v2", "cuMemHostAlloc")))
        self.assertEqual(sum(row["frees"] for row in rows),
                         len(self.driver_calls("cuMemFree_v2", "cuMemFreeHost")))
        (workspace,) = [row for row in rows if row["site"]["line"] == line("workspace_malloc")]
        self.assertEqual((workspace["calls"], workspace["bytes"], workspace["live_bytes"]),
                         (E["kWorkspaces"], E["kWorkspaces"] * E["kWorkspaceBytes"], 0))

    def test_all_that_the_gpu_did_is_known(self):
        gpu = self.gaps["gpu"]
        self.assertIsNone(gpu["missing"])
        for what, kind in (("kernels", "kernel"), ("copies", "copy"), ("memsets", "memset")):
            self.assertEqual(gpu[what], len(self.truth.ops(kind)), what)
        busy = self.truth.busy() / 1e6
        self.assertAlmostEqual(gpu["busy_ms"], busy, delta=0.001 * busy)
        self.assertEqual(gpu["unknown_ms"], 0)

    @unittest.skipUnless(os.path.exists(os.path.join(BUILT, "trainer_nvcc_static")), "no nvcc")
    def test_nvcc_s_own_fails_in_the_same_way(self):
        program = os.path.join(BUILT, "trainer_nvcc_static")
        guest_done = self.host.check_unnoticed(self, [program], env=SIMULATED)
        self.assertNotEqual(guest_done.status, 0)


if __name__ == "__main__":
    unittest.main()
