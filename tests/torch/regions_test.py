#!/usr/bin/env python3
"""`lull regions` of a plain loop and of a Lightning program with record_function and NVTX
ranges, one within the other, on the simulated device: counts are exact, and each region lies
between what the program's own clock says just within it and just around it, mostly within
20 us of both. The ranges are NVTX's own, by PyTorch's CUDA build."""

import json
import os
import subprocess
import tempfile
import unittest

import scenario
import region_clock
from scenario import Scenario, TorchCase, guest, python

# Of a thread that lost its processor between two looks at the clock nobody knows more.
NEAR_NS, NEAR_SHARE = 20_000, 0.5
STEPS = 40
# What PyTorch opens by itself.
OF_PYTORCH = ("Optimizer.", "enumerate(DataLoader)#")


def setUpModule():
    global host
    host = guest.Host()
    os.environ.update(host.environment)


def tearDownModule():
    host.close()


def has_lightning():
    return subprocess.run([scenario.ON_SIM, "python", "-c", "import lightning"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


class Regions(TorchCase):
    def check(self, mode):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "noted")
            run = Scenario(host, mode, python("regions.py", mode, file), "kernel_us=50")
            self.assert_ran(run)
            with open(file) as noted:
                script = json.load(noted)
        answer = run.ask("regions")
        self.assertEqual((answer["unnamed"], answer["unopened"]), (0, 0))
        rows = {"/".join([*row["path"], row["name"]]): row for row in answer["regions"]}
        own = {path: row for path, row in rows.items() if not row["name"].startswith(OF_PYTORCH)}
        self.assertEqual({path: row["count"] for path, row in own.items()},
                         {path: len(spans) for path, spans in script.items()})
        found = region_clock.exported(mode, run.start_ns(), host.environment)
        distances = region_clock.compare(self, script, found)
        distances.print(mode)
        self.assertLess(distances.nearest(NEAR_SHARE), NEAR_NS)
        for path, noted in script.items():
            told = rows[path]["total_ms"] * 1e6
            within = sum(end - start for _, start, end, _, _ in noted)
            around = sum(after - before for before, _, _, after, _ in noted)
            self.assertTrue(within - 1 <= told <= around + 1, (path, within, told, around))
        return rows

    def test_of_a_plain_loop(self):
        rows = self.check("plain")
        self.assertEqual(rows["epoch"]["count"], 1)
        self.assertEqual(rows["epoch/step/forward/second layer/matmul"]["count"], STEPS)
        self.assertEqual(rows["epoch/step/update/Optimizer.step#SGD.step"]["count"], STEPS)
        self.assertGreater(rows["epoch/step/forward/first layer"]["gpu_busy_ms"], 0)

    @unittest.skipUnless(has_lightning(), "no lightning here")
    def test_of_lightning(self):
        rows = self.check("lightning")
        step = "fit/Optimizer.step#SGD.step"
        self.assertEqual(rows[step]["count"], STEPS)
        self.assertEqual(rows[step + "/training_step/loss/forward"]["count"], STEPS)
        self.assertEqual(rows["fit/validation_step"]["count"], 2 * 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
