#!/usr/bin/env python3
"""The CUDA build of PyTorch on a machine that has no CUDA driver: lull calls nothing of
CUPTI. (cuptiGetVersion() of CUDA 13.2 ends such a process.)"""

import os
import tempfile
import unittest

from scenario import checks, guest, python


class NoDriver(unittest.TestCase):
    def test_training_on_the_cpu_is_unnoticed(self):
        host = guest.Host()
        self.addCleanup(host.close)
        folder = tempfile.TemporaryDirectory(prefix="lull-no-driver-")
        self.addCleanup(folder.cleanup)
        simulated = os.environ["LULL_SIM"]
        for name in os.listdir(simulated):
            if not name.startswith(("libcuda.", "libcupti")):
                os.symlink(os.path.join(simulated, name), os.path.join(folder.name, name))
        environment = {**host.environment, "LULL_SIM": folder.name}
        command = python("no_driver.py")
        alone = guest.execute(command, environment)
        self.assertEqual(alone.status, 0, alone.stderr)
        watched = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", "none", "--gpu", "continuous", "--",
             *command], environment)
        self.assertEqual((watched.status, watched.stdout, watched.stderr),
                         (0, alone.stdout, alone.stderr))
        os.environ.update(host.environment)
        (row,) = checks.query(guest.LULL, "report", "none")["processes"]
        self.assertTrue(row["torch"])
        self.assertEqual(row["cupti_state"], "unused")


if __name__ == "__main__":
    unittest.main(verbosity=2)
