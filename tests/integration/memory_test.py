#!/usr/bin/env python3
"""`lull memory` of programs whose memory is known to the byte: on the simulated device,
and with PyTorch's CPU tensors where there is a PyTorch."""

import os
import subprocess
import sys
import unittest

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tools", "demo_job")]
import checks
import expected
import memory

STEPS = memory.STEPS


def site(name):
    return expected.site("memory.py", name)


class Memory(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def run_puppet(self, name, python, environment):
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", name, "--step-range", "step",
             "--overhead-budget", "100", "--",
             python, os.path.join(PUPPETS, "memory.py"), name],
            {**self.host.environment, **environment})
        self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))
        return checks.query(guest.LULL, "memory", name)

    def check_growth(self, row, line):
        points = [(p["step"], p["live_bytes"]) for p in row["points"]]
        before = points[0][1] - memory.KEPT  # imports may hold a little
        self.assertEqual(points, [(k, before + k * memory.KEPT) for k in range(1, STEPS + 1)])
        growth = row["growth"]
        self.assertEqual(growth["bytes_per_step"], memory.KEPT)
        self.assertEqual((growth["first_step"], growth["last_step"]), (STEPS // 2 + 1, STEPS))
        self.assertEqual(growth["sites"][0]["site"]["line"], line)
        self.assertEqual(growth["sites"][0]["bytes"], growth["bytes"])
        return before

    def test_of_the_simulated_device_is_exact(self):
        answer = self.run_puppet("device", sys.executable, {
            "LD_LIBRARY_PATH": os.environ["LULL_SIM"], "LULL_SIM_CONFIG": "memory_gib=1"})
        rows = {row["allocator"]: row for row in answer["memory"]}
        cuda = rows["cuda"]
        self.assertEqual(self.check_growth(cuda, site("kept")), 0)
        kept = memory.STEPS * memory.KEPT
        self.assertEqual(cuda["peak_bytes"], kept + memory.LARGE)
        self.assertEqual(cuda["live_bytes"], cuda["peak_bytes"])
        self.assertEqual({s["site"]["line"]: (s["bytes"], s["blocks"])
                          for s in cuda["peak_sites"]},
                         {site("kept"): (kept, memory.STEPS), site("malloc"): (memory.LARGE, 1)})
        self.assertIsNone(cuda["reserved_bytes"])

        tensors = rows["torch_cuda"]
        self.assertEqual(tensors["device"], 0)
        self.assertEqual((tensors["peak_bytes"], tensors["live_bytes"]),
                         (memory.HANDED_OUT, memory.HANDED_OUT // 2))
        self.assertEqual((tensors["reserved_at_peak_bytes"], tensors["reserved_bytes"],
                          tensors["reserved_peak_bytes"]),
                         (memory.SEGMENT, memory.LARGE, memory.LARGE))

        (retries,) = answer["malloc_retries"]
        self.assertEqual((retries["failed_calls"], retries["retries"], retries["succeeded"]),
                         (1, 1, 1))
        self.assertEqual(retries["site"]["line"], site("malloc"))
        report = checks.query(guest.LULL, "report", "device")
        rules = {advice["rule"]: advice["finding"] for advice in report["summary"]["advice"]}
        self.assertIn("1 call tried again", rules["fragmented_memory"])
        self.assertIn("memory.py:%d" % site("kept"), rules["growing_memory"])

    def test_of_cpu_tensors_is_exact(self):
        found = subprocess.run([os.path.join(ROOT, "tools", "python_with_torch")],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if found.returncode != 0:
            self.skipTest("no PyTorch")
        answer = self.run_puppet("tensors", found.stdout.decode().strip(), {})
        (row,) = [row for row in answer["memory"] if row["allocator"] == "torch_cpu"]
        before = self.check_growth(row, site("kept_tensor"))
        peak = before + memory.STEPS * memory.KEPT + memory.SCRATCH
        self.assertEqual(row["peak_bytes"], peak)
        self.assertEqual({s["site"]["line"]: s["bytes"] for s in row["peak_sites"]
                          if s["site"]["file"].endswith("memory.py")},
                         {site("kept_tensor"): memory.STEPS * memory.KEPT,
                          site("scratch_tensor"): memory.SCRATCH})
        self.assertEqual(answer["malloc_retries"], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
