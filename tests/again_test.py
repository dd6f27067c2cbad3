#!/usr/bin/env python3
"""What is tried again, and what never."""

import os
import subprocess
import sys
import tempfile
import unittest

AGAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "again.py")
SCRIPT = """
import os, subprocess, sys, unittest
class T(unittest.TestCase):
    def test_first(self):
        if os.path.exists({was!r}):
            return
        open({was!r}, "w").close()
        {body}
unittest.main()
"""


class Again(unittest.TestCase):
    def outcome(self, body):
        with tempfile.TemporaryDirectory() as folder:
            script, log = os.path.join(folder, "script.py"), os.path.join(folder, "log")
            with open(script, "w", encoding="utf-8") as file:
                file.write(SCRIPT.format(was=os.path.join(folder, "was"), body=body))
            done = subprocess.run([sys.executable, AGAIN, log, sys.executable, script],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            return done.returncode, os.path.exists(log)

    def test_comparisons_of_numbers_are_tried_again(self):
        for body in ("self.assertLess(5.1, 5)", "self.assertGreater(351.0, 0.9 * 400, {'a': 1})",
                     "self.assertGreaterEqual(1, 3)", "self.assertAlmostEqual(1e-9, 2.5, delta=1)",
                     "self.assertLessEqual(2, -1e300, 'why')"):
            with self.subTest(body):
                self.assertEqual(self.outcome(body), (0, True))

    def test_everything_else_is_believed(self):
        for body, status in (("self.assertEqual(1, 0)", 1), ("self.assertTrue(False)", 1),
                             ("self.fail('it did not happen in time')", 1), ("{}['gone']", 1),
                             ("subprocess.run(['sleep', '9'], timeout=0.1)", 1),
                             ("self.assertEqual((1, ''), (0, ''))", 1),
                             ("self.assertLess(len('abcd'), 3) if 0 else self.assertIn(1, [])", 1),
                             ("os.abort()", 134), ("os._exit(3)", 3)):
            with self.subTest(body):
                self.assertEqual(self.outcome(body), (status, False))


if __name__ == "__main__":
    unittest.main()
