#!/usr/bin/env python3
"""`lull run` and `lull attach` as aarch64 programs, on a C and on a Python guest. Run by
tools/test --aarch64 inside of the emulated machine (tools/aarch64/machine)."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LULL = os.environ["LULL_BIN"]
WAITS = os.environ["LULL_AARCH64_WAITS"]
SCRIPT = """
import gc, sys, time

def work():
    time.sleep(0.01)
    gc.collect()

for i in range(int(sys.argv[1])):
    work()
print("done")
"""


class Aarch64(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.script = os.path.join(folder.name, "guest.py")
        with open(self.script, "w") as file:
            file.write(SCRIPT)
        self.environment = dict(os.environ, XDG_DATA_HOME=folder.name + "/data",
                                LULL_RUNTIME_DIR=folder.name + "/run")

    def lull(self, *arguments):
        return subprocess.run([LULL, *arguments], env=self.environment, text=True,
                              capture_output=True, timeout=120)

    def report(self, name):
        done = self.lull("report", name, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_c_guest_is_reported_with_its_lines(self):
        done = self.lull("run", "--name", "c", "--overhead-budget", "50", "--", WAITS)
        self.assertEqual((done.returncode, done.stdout), (3, "20 steps\n"), done.stderr)
        self.assertIn("Nothing lost", done.stderr)
        report = self.report("c")
        calls = {one["api"]: (one["calls"], one["site"]["function"])
                 for one in report["sync_points"]}
        self.assertEqual(calls, {"cudaMemcpy": (20, "step"),
                                 "cudaStreamSynchronize": (20, "step")})
        polls = [one for one in report["host_waits"] if one["api"] == "poll"]
        self.assertEqual({one["site"]["function"] for one in polls}, {"step"})

    def test_a_python_guest_is_reported_with_its_lines(self):
        done = self.lull("run", "--name", "py", "--overhead-budget", "50", "--",
                         sys.executable, self.script, "30")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
        report = self.report("py")
        self.assertEqual(report["summary"]["gc_pauses"], 30)
        self.assertEqual({(one["site"]["function"], one["site"]["line"])
                          for one in report["gc_pauses"]}, {("work", 6)})
        sleeps = [one for one in report["host_waits"] if one["kind"] == "sleep"]
        self.assertEqual({(one["site"]["function"], one["site"]["line"])
                          for one in sleeps}, {("work", 5)})

    def test_a_running_python_is_attached_to_and_left(self):
        guest = subprocess.Popen([sys.executable, self.script, "1000000"])
        self.addCleanup(guest.wait)
        self.addCleanup(guest.kill)
        time.sleep(2)
        watching = subprocess.Popen(
            [LULL, "attach", str(guest.pid), "--name", "late", "--overhead-budget", "50"],
            env=self.environment, stderr=subprocess.PIPE, text=True)
        self.assertIn("watching process", watching.stderr.readline())
        time.sleep(10)
        watching.send_signal(signal.SIGINT)
        text = watching.communicate(timeout=60)[1]
        self.assertEqual(watching.returncode, 0, text)
        self.assertIsNone(guest.poll(), "it has ended")
        report = self.report("late")
        self.assertGreater(report["summary"]["gc_pauses"], 5)
        self.assertIn("work", {one["site"]["function"] for one in report["gc_pauses"]})


if __name__ == "__main__":
    unittest.main(verbosity=2)
