#!/usr/bin/env python3
"""A program whose greenlets switch inside of backward() runs as it does without lull."""

import os
import subprocess
import unittest

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "tests", "puppets", "greenlets.py")


def python():
    """One with PyTorch and greenlet, or None."""
    found = subprocess.run([os.path.join(ROOT, "tools", "python_with_torch")],
                           stdout=subprocess.PIPE, check=False).stdout.decode().strip()
    known = found and subprocess.run([found, "-c", "import greenlet"], check=False,
                                     stderr=subprocess.DEVNULL).returncode == 0
    return found if known else None


@unittest.skipUnless(python(), "no PyTorch with greenlet here")
class Greenlets(unittest.TestCase):
    def test_may_switch_within_backward(self):
        host = guest.Host()
        self.addCleanup(host.close)
        done = guest.execute([guest.LULL, "run", "--quiet", "--", python(), "-W", "ignore",
                              PROGRAM], host.environment)
        self.assertEqual((done.status, done.stdout, done.stderr), (0, "done\n", ""))


if __name__ == "__main__":
    unittest.main()
