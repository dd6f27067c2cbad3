#!/usr/bin/env python3
"""CuPy under lull: the runtime API, kernels by the driver's, a pool of its own."""

import unittest

from framework import FrameworkCase

STEPS = 5


class CuPy(FrameworkCase):
    FRAMEWORK = "cupy"

    def test_waits_have_their_lines(self):
        self.assert_syncs({
            "upload": {}, "event": {"cudaEventSynchronize": STEPS},
            "read": {"cudaMemcpy": STEPS}, "download": {"cudaMemcpy": STEPS},
            "stream": {"cudaStreamSynchronize": 1}, "device": {"cudaDeviceSynchronize": 1}})

    def test_kernels_have_their_lines(self):
        self.assert_kernels({
            "raw kernel": [("twice", STEPS)], "elementwise": [("cupy_sqrt", STEPS)],
            "product": [("sgemm", STEPS)],
            "read": [("DeviceReduceKernel", STEPS), ("DeviceReduceSingleTile", STEPS)]})

    def test_allocations_have_their_lines_and_go_when_the_pool_is_emptied(self):
        self.assert_allocations({
            "weight": {"cuda": 1}, "upload": {"cuda": 1, "pinned": 1}, "elementwise": {"cuda": 1},
            "product": {"cuda": 1}, "read": {"cuda": 2}})
        def check(run):
            live = {row["allocator"]: row["live_bytes"] for row in run.memory["memory"]}
            self.assertEqual(live, {"cuda": 0, "pinned": 256 * 256 * 4})

        self.each(check)

    def test_idle_time_has_its_culprits(self):
        self.assert_culprits({"event", "read", "download"})


# Not collected where it is imported.
del FrameworkCase
if __name__ == "__main__":
    unittest.main()
