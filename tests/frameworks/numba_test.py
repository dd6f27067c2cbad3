#!/usr/bin/env python3
"""Numba's CUDA target under lull: the driver API through NVIDIA's cuda-python."""

import unittest

from framework import FrameworkCase

STEPS = 5


class Numba(FrameworkCase):
    FRAMEWORK = "numba"

    def test_waits_have_their_lines(self):
        self.assert_syncs({
            "upload": {"cuMemcpyHtoD_v2": STEPS}, "pinned upload": {},
            "event": {"cuEventSynchronize": STEPS}, "pinned download": {},
            "stream": {"cuStreamSynchronize": STEPS}, "download": {"cuMemcpyDtoH_v2": STEPS},
            "device": {"cuCtxSynchronize": 1}})

    def test_kernels_have_their_lines(self):
        self.assert_kernels({"axpy": [("axpy", STEPS)], "square": [("square", STEPS)]})

    def test_allocations_have_their_lines(self):
        self.assert_allocations({
            "total": {"cuda": 1}, "pinned": {"pinned": 1}, "upload": {"cuda": STEPS},
            "pinned upload": {"cuda": STEPS}})
        def check(run):
            live = {row["allocator"]: row["live_bytes"] for row in run.memory["memory"]}
            self.assertEqual(live["cuda"], 0)

        self.each(check)

    def test_idle_time_has_its_culprits(self):
        self.assert_culprits({"upload", "event", "stream", "download"})


# Not collected where it is imported.
del FrameworkCase
if __name__ == "__main__":
    unittest.main()
