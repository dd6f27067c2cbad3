#!/usr/bin/env python3
"""Ranks of one host that wait for each other: PyTorch's DDP over gloo on the CPU."""

import os
import sys
import tempfile
import unittest

import guest
from loader_test import PUPPETS, TorchOnTheCpu, expected

WORLD = 2


class Launcher:
    """What torchrun does, as far as a job over gloo is concerned."""

    def __init__(self, python, folder, *options):
        self.script = os.path.join(folder, "launch.py")
        with open(self.script, "w") as file:
            file.write(f"""import os, subprocess, sys
ranks = [subprocess.Popen(
    {[python, "-W", "ignore", os.path.join(PUPPETS, "ddp.py"), "--store", os.path.join(folder, "store"), *options]!r},
    env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="{WORLD}",
             OMP_NUM_THREADS="1")) for rank in range({WORLD})]
sys.exit(max(rank.wait() for rank in ranks))
""")


class Ranks(TorchOnTheCpu):
    def run_ranks(self, name, *options):
        with tempfile.TemporaryDirectory() as folder:
            launcher = Launcher(self.python, folder, *options)
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--name", name, "--overhead-budget", "100",
                 "--", sys.executable, launcher.script], self.host.environment)
            self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))

    def test_a_wait_for_another_rank_is_no_lock(self):
        self.run_ranks("comm", "--late")
        waits = self.ask("waits", "comm", "--rank", "0")["host_waits"]
        at = expected.site("ddp.py", "backward")
        kinds = {row["kind"]: row["total_ms"] for row in waits if row["site"]["line"] == at}
        self.assertGreater(kinds.get("comm", 0), 20 * 45, waits)
        self.assertLess(kinds.get("lock", 0), 50, waits)


if __name__ == "__main__":
    unittest.main()
