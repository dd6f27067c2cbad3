#!/usr/bin/env python3
"""CPython's own tests around processes, threads, signals and the garbage collector,
on every interpreter found, with and without lull.

usage: guest_python_matrix_test.py [3.N...]     (default: all that are found)
"""

import sys
import unittest

import guest
import interpreters
import python_suite

MODULES = ("test_gc", "test_signal", "test_threading", "test_subprocess",
           "test_multiprocessing_fork", "test_multiprocessing_forkserver",
           "test_multiprocessing_spawn")
wanted = [argument for argument in sys.argv[1:] if argument.startswith("3.")]


def modules_of(python):
    """MODULES under the names that this interpreter has for them: from 3.12 on the
    multiprocessing tests are packages, which have to be named part by part."""
    for module in MODULES:
        if not module.startswith("test_multiprocessing"):
            yield module
            continue
        parts = interpreters.ask(
            python, f"import os, test.{module} as m; print(*sorted(n[:-3] for n in "
            "os.listdir(m.__path__[0]) if n.startswith('test_')) if hasattr(m, '__path__') "
            "else ())")
        if parts is None:
            continue
        yield from (f"test.{module}.{part}" for part in parts.split()) if parts else [module]


class PythonMatrix(unittest.TestCase):
    pass


def add_case(series, python):
    def case(self):
        host = guest.Host()
        self.addCleanup(host.close)
        for module in modules_of(python):
            with self.subTest(module=module):
                count = python_suite.check_module(self, host, python, module)
                print(f"python{series} {module}: {count} tests alike", file=sys.stderr)

    setattr(PythonMatrix, f"test_python_{series}_passes_its_own_tests_as_without_lull", case)


for found_series, executable in interpreters.with_test_suite().items():
    if not wanted or found_series in wanted:
        add_case(found_series, executable)

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
