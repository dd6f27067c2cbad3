#!/usr/bin/env python3
"""The end of a program waits for nobody: neither for a relay that reads no more, nor for
the buffers that CUPTI still holds."""

import os
import signal
import subprocess
import sys
import time
import unittest

import guest
from guest import wait_until

SIM = os.environ["LULL_SIM"]
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guests",
                      "ends_without_relay.py")
THREADS = 28  # a buffer each, of the 32 that there are: 1.8 s, when each was waited for


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(") ", 1)[1][0] == "Z"
    except OSError:
        return True


class Exit(unittest.TestCase):
    def setUp(self):
        self.host = guest.Host()
        self.addCleanup(self.host.close)

    def test_a_relay_that_reads_no_more_holds_nobody_up(self):
        run = subprocess.Popen(
            [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--overhead-budget", "100",
             "--name", "ended", "--", sys.executable, SCRIPT, "libcudart.so.13", str(THREADS)],
            env={**self.host.environment, "LD_LIBRARY_PATH": SIM}, stdout=subprocess.PIPE)
        try:
            pid, at = map(int, run.stdout.readline().split())
            wait_until(lambda: has_ended(pid))
            took = time.monotonic() - at / 1e9
        finally:
            with open(f"/proc/{run.pid}/task/{run.pid}/children") as file:
                for stopped in (run.pid, *map(int, file.read().split())):
                    os.kill(stopped, signal.SIGCONT)
            self.assertEqual(run.wait(), 0)
            run.stdout.close()
        self.assertLess(took, 1)
        # What no ring took is told.
        report = guest.execute([guest.LULL, "report", "ended"], self.host.environment)
        self.assertRegex(report.stdout, "GPU records: .* lost for want of room")


    def test_what_the_loader_has_finished_it_does_not_set_up_again(self):
        ends = os.path.join(guest.GUESTS, "ends")
        run = guest.execute([guest.LULL, "run", "--quiet", "--name", "once", "--", ends],
                            self.host.environment)
        self.assertEqual((run.status, run.stdout), (0, "set up\n"))
        report = guest.execute([guest.LULL, "report", "once", "--json"],
                               self.host.environment)
        self.assertIn('"gpu": true', report.stdout)


if __name__ == "__main__":
    unittest.main()
