#!/usr/bin/env python3
"""JAX under lull: the driver API by dlsym, graphs that XLA builds, threads without Python, and
nearly all memory allocated at once."""

import collections
import unittest

from framework import FrameworkCase

STEPS = 8


class Jax(FrameworkCase):
    FRAMEWORK = "jax"
    # Kernels so slow that who reads a loss has to wait for it.
    ENVIRONMENT = {"LULL_SIM_CONFIG": "zero_reads_kib=4;kernel_us=1000"}

    def test_graphs_have_the_line_of_the_jitted_step(self):
        of_graphs = collections.Counter(op.name for op in self.traced.truth.ops("kernel")
                                        if op.graph != 0)
        self.assertGreaterEqual(of_graphs.total(), 4 * STEPS)
        rows = self.traced.at(self.traced.kernels["kernels"], "update", "name")
        # The first step tries some of them out, too, before it captures them.
        self.assertFalse(of_graphs - collections.Counter(rows), (of_graphs, rows))

    def test_memory_has_the_line_that_asked_for_the_device_first(self):
        def check(run):
            (peak,) = [row for row in run.memory["memory"] if row["allocator"] == "cuda"]
            (site,) = peak["peak_sites"]
            self.assertEqual((peak["peak_bytes"], site["site"]["file"], site["site"]["line"]),
                             (60 << 30, run.script, run.site("weight")))
            self.assertEqual(peak["live_bytes"], 0)

        self.each(check)

    def test_who_waits_for_a_value_waits_on_the_host(self):
        # The copy is made, and waited for, by a thread of XLA's.
        waits = self.traced.ask("waits")["host_waits"]
        lines = {row["site"]["line"] for row in waits if row["site"]["file"] == self.traced.script}
        self.assertIn(self.traced.site("read"), lines)


class JaxWithCublas(Jax):
    """Else XLA's tuning may choose its own kernels for all products; a product by cuBLAS is
    captured into the graph of the step."""

    ENVIRONMENT = {**Jax.ENVIRONMENT, "XLA_FLAGS": "--xla_gpu_enable_triton_gemm=false"}


# Not collected where it is imported.
del FrameworkCase
if __name__ == "__main__":
    unittest.main()
