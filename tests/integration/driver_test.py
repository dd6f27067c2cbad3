#!/usr/bin/env python3
"""A driver that no CUPTI can work with. CUPTI 13.2 answers to it by calling itself until the
stack ends, so lull must not call it at all."""

import json
import os
import sys
import tempfile
import unittest

import guest

SIM = os.environ["LULL_SIM"]
ENDLESS = os.path.join(guest.GUESTS, "libendless_cupti.so")
PROGRAM = """
import ctypes
runtime = ctypes.CDLL("libcudart.so.13")
print([runtime.cudaDeviceSynchronize() for _ in range(100)][-1])
"""


class Driver(unittest.TestCase):
    def check_unnoticed(self, cupti):
        host = guest.Host()
        self.addCleanup(host.close)
        with tempfile.TemporaryDirectory(prefix="lull-driver-") as folder:
            # The simulated driver has no tables for tools; its own CUPTI needs none.
            for name in ("libcuda.so.1", "libcudart.so.13"):
                os.symlink(os.path.join(SIM, name), os.path.join(folder, name))
            os.symlink(cupti, os.path.join(folder, "libcupti.so.13"))
            environment = {**host.environment, "LD_LIBRARY_PATH": folder}
            command = [sys.executable, "-c", PROGRAM]
            alone = guest.execute(command, environment)
            self.assertEqual((alone.status, alone.stdout), (0, "0\n"), alone.stderr)
            under = guest.execute(
                [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--", *command],
                environment)
        self.assertEqual((under.status, under.stdout, under.stderr),
                         (0, alone.stdout, alone.stderr))
        done = guest.execute([guest.LULL, "report", "--json"], host.environment)
        (process,) = json.loads(done.stdout)["processes"]
        return process

    def test_that_serves_no_tools_ends_no_program(self):
        self.assertEqual(self.check_unnoticed(ENDLESS)["cupti_state"], "failed")

    def test_that_is_simulated_is_traced_by_the_simulated_cupti(self):
        process = self.check_unnoticed(os.path.join(SIM, "libcupti.so.13"))
        self.assertIn(process["cupti_state"], ("ready", "tracing"))


if __name__ == "__main__":
    unittest.main()
