#!/usr/bin/env python3
"""CPython's own tests of what lull is closest to, on two interpreters: the oldest
and the newest found. The whole matrix is in guest_python_matrix_test.py."""

import sys
import unittest

import guest
import interpreters
import python_suite

MODULES = ("test_gc", "test_signal", "test_threading")


class QuickPythonSuite(unittest.TestCase):
    def test_the_oldest_and_the_newest_interpreter_pass_as_without_lull(self):
        found = interpreters.with_test_suite()
        self.assertTrue(found, "no interpreter with its own test suite on PATH "
                        "(tools/install_dependencies --test installs one)")
        series = sorted(found, key=lambda name: int(name.split(".")[1]))
        host = guest.Host()
        self.addCleanup(host.close)
        for name in dict.fromkeys((series[0], series[-1])):
            for module in MODULES:
                with self.subTest(python=name, module=module):
                    count = python_suite.check_module(self, host, found[name], module)
                    print(f"python{name} {module}: {count} tests alike", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
