#!/usr/bin/env python3
"""That no test is left out beside others, nor any that fails."""

import os
import subprocess
import sys
import tempfile
import unittest

APART = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apart.py")
SCRIPT = """
import os, unittest
class A(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = "made"
    def test_one(self):
        print(self.made, "one")
    def test_two(self):
        print("two")
        {body}
class B(unittest.TestCase):
    @unittest.skip("never")
    def test_skipped(self):
        print("not skipped")
    def test_three(self):
        print("three")
if __name__ == "__main__":
    unittest.main()
"""


class Apart(unittest.TestCase):
    def outcome(self, script):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "script_test.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(script)
            done = subprocess.run([sys.executable, APART, "2", path], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def test_each_test_runs_once_in_a_process_of_its_own(self):
        status, output = self.outcome(SCRIPT.format(body="pass"))
        self.assertEqual(status, 0, output)
        for word in ("made one\n", "two\n", "three\n"):
            self.assertEqual(output.count(word), 1, output)
        self.assertNotIn("not skipped", output)
        self.assertEqual(output.count("Ran 1 test in"), 4, output)

    def test_a_failure_and_what_is_worse_are_told(self):
        for body, wanted in (("self.fail()", 1), ("os._exit(3)", 3), ("os.kill(os.getpid(), 9)", 137)):
            with self.subTest(body):
                status, output = self.outcome(SCRIPT.format(body=body))
                self.assertEqual(status, wanted, output)
                self.assertEqual(output.count("three\n"), 1, output)
        self.assertIn("FAIL: test_two", self.outcome(SCRIPT.format(body="self.fail()"))[1])

    def test_a_script_that_cannot_be_loaded_or_has_no_tests_fails(self):
        self.assertNotEqual(self.outcome("import nothing_like_it")[0], 0)
        self.assertNotEqual(self.outcome("pass")[0], 0)

    def test_who_shows_no_result_has_not_passed_nor_merely_failed(self):
        self.assertEqual(self.outcome(SCRIPT.format(body="os._exit(0)"))[0], 70)
        self.assertEqual(self.outcome(SCRIPT.format(body="os._exit(1)"))[0], 70)
        without_main = SCRIPT.format(body="self.fail()").partition("if __name__")[0]
        self.assertEqual(self.outcome(without_main)[0], 70)


if __name__ == "__main__":
    unittest.main()
