#!/usr/bin/env python3
"""Programs that replay a CUDA graph which is older than the tracing of the GPU: CUPTI with
GRAPH_TRACE ends such programs (docs/decisions/no_graph_trace.md), on the simulated device, too."""

import json
import os
import subprocess
import tempfile
import time
import unittest

import guest

SIM, BUILT = os.environ["LULL_SIM"], os.environ["LULL_PUPPETS"]
KERNELS = 4  # of the graph: tests/puppets/expected.h
REPLAYS = 2000


class OlderGraphs(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)
        folder = tempfile.TemporaryDirectory(prefix="lull-graph-")
        self.addCleanup(folder.cleanup)
        self.environment = {**self.host.environment, "LD_LIBRARY_PATH": SIM,
                            "LULL_SIM_CONFIG": "kernel_us=20"}

    def command(self, *lull, replays=REPLAYS):
        return [*lull, os.path.join(BUILT, "graph_host13"), str(replays)]

    def gpu(self, name):
        done = guest.execute([guest.LULL, "gaps", name, "--json", "--phase", "all"],
                             self.environment)
        self.assertEqual(done.status, 0, done.stderr)
        return json.loads(done.stdout)["gpu"]

    def assert_nodes(self, name):
        """Some graphs were traced, as the operations that they are made of."""
        gpu = self.gpu(name)
        self.assertGreater(gpu["kernels"], 20 * KERNELS)
        self.assertGreater(gpu["copies"], 20)
        # Where a launch ended is known from those before it.
        self.assertLess(gpu["unknown_ms"], 0.05 * gpu["traced_ms"], gpu)
        self.assertEqual((gpu["graphs"], gpu["late_operations"], gpu["records_bad"]), (0, 0, 0))

    def test_windows_come_and_go_while_a_graph_is_replayed(self):
        # Long enough for a relay that waits for a processor: windows are its to begin, and on a
        # full machine the first one was seen to come after 3.3 s.
        done = guest.execute(
            self.command(guest.LULL, "run", "--quiet", "--name", "windows", "--schedule",
                         "skip_first=300ms,wait=100ms,warmup=20ms,active=200ms", "--",
                         replays=3 * REPLAYS),
            self.environment)
        self.assertEqual(done.status, 0, done.stderr)
        self.assert_nodes("windows")

    def test_a_program_that_replays_a_graph_can_be_watched(self):
        job = subprocess.Popen(self.command(), env=self.environment)
        self.addCleanup(job.wait)
        time.sleep(0.5)
        done = guest.execute([guest.LULL, "attach", str(job.pid), "--for", "1s", "--gpu",
                              "continuous", "--quiet", "--name", "attached"], self.environment)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(job.wait(timeout=60), 0)
        self.assert_nodes("attached")


if __name__ == "__main__":
    unittest.main(verbosity=2)
