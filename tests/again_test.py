#!/usr/bin/env python3
"""What is tried again, and what never."""

import os
import subprocess
import sys
import tempfile
import time
import unittest

AGAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "again.py")
SCRIPT = """
import os, subprocess, sys, unittest
class T(unittest.TestCase):
    def test_first(self):
        with open({was!r}, "a") as file:
            file.write(".")
        if os.path.getsize({was!r}) > {fails}:
            return
        {body}
unittest.main()
"""


class Again(unittest.TestCase):
    def outcome(self, body, fails=1):
        """(exit status, lines of the log) where the first `fails` tries run `body`."""
        with tempfile.TemporaryDirectory() as folder:
            script, log = os.path.join(folder, "script.py"), os.path.join(folder, "log")
            with open(script, "w", encoding="utf-8") as file:
                file.write(SCRIPT.format(was=os.path.join(folder, "was"), body=body,
                                         fails=fails))
            done = subprocess.run([sys.executable, AGAIN, log, sys.executable, script],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            if not os.path.exists(log):
                return done.returncode, 0
            with open(log, encoding="utf-8") as file:
                return done.returncode, len(file.readlines())

    def test_comparisons_of_numbers_are_tried_again(self):
        for body in ("self.assertLess(5.1, 5)", "self.assertGreater(351.0, 0.9 * 400, {'a': 1})",
                     "self.assertGreaterEqual(1, 3)", "self.assertAlmostEqual(1e-9, 2.5, delta=1)",
                     "self.assertLessEqual(2, -1e300, 'why')"):
            with self.subTest(body):
                self.assertEqual(self.outcome(body), (0, 1))

    def test_three_tries_are_all(self):
        self.assertEqual(self.outcome("self.assertLess(5.1, 5)", fails=2), (0, 1))
        self.assertEqual(self.outcome("self.assertLess(5.1, 5)", fails=3), (1, 1))

    def test_everything_else_is_believed(self):
        for body, status in (("self.assertEqual(1, 0)", 1), ("self.assertTrue(False)", 1),
                             ("self.fail('it did not happen in time')", 1), ("{}['gone']", 1),
                             ("subprocess.run(['sleep', '9'], timeout=0.1)", 1),
                             ("self.assertEqual((1, ''), (0, ''))", 1),
                             ("self.assertLess(len('abcd'), 3) if 0 else self.assertIn(1, [])", 1),
                             ("os.abort()", 134), ("os._exit(3)", 3)):
            with self.subTest(body):
                self.assertEqual(self.outcome(body), (status, 0))

    def test_who_shares_a_lock_is_alone_when_it_is_tried_again(self):
        # Each notes when it began and ended; of two at once the quick one fails at first.
        script = """
import os, sys, time, unittest
class T(unittest.TestCase):
    def test(self):
        note, name, first, later = sys.argv[1:]
        tried = os.path.exists(name)
        open(name, "a").close()
        begin = time.monotonic()
        time.sleep(float(later if tried else first))
        with open(note, "a") as file:
            file.write(f"{os.path.basename(name)} {begin} {time.monotonic()}\\n")
        if name.endswith("quick") and not tried:
            self.assertLess(2, 1)
unittest.main(argv=["x"])
"""
        with tempfile.TemporaryDirectory() as folder:
            def path(name):
                return os.path.join(folder, name)

            with open(path("script.py"), "w", encoding="utf-8") as file:
                file.write(script)

            def begin(name, first, later):
                return subprocess.Popen(
                    [sys.executable, AGAIN, "--beside", path("lock"), path("log"),
                     sys.executable, path("script.py"), path("note"), path(name), first, later],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            slow, quick = begin("slow", "1.5", "0"), begin("quick", "0.1", "0.5")
            while not os.path.exists(path("note")):  # until the quick one has failed
                self.assertIsNone(quick.poll())
                time.sleep(0.01)
            late = begin("late", "0.1", "0")
            self.assertEqual([one.wait() for one in (slow, quick, late)], [0, 0, 0])
            with open(path("note"), encoding="utf-8") as file:
                spans = [(name, float(start), float(end)) for name, start, end in
                         (line.split() for line in file)]
        self.assertEqual(sorted(name for name, _, _ in spans), ["late", "quick", "quick", "slow"])
        _, start, end = [span for span in spans if span[0] == "quick"][1]
        for name, other_start, other_end in spans:
            if name != "quick":
                self.assertTrue(other_end <= start or end <= other_start, (name, spans))


if __name__ == "__main__":
    unittest.main()
