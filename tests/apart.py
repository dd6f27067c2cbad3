#!/usr/bin/env python3
"""Runs the tests of a script of unittest beside one another, each in a process of its own.

    apart.py COUNT SCRIPT

COUNT at once. For scripts that wait most of the time: beside other scripts they would not have
the processors that their comparisons of times need, beside each other they do.
The outputs follow one another, each whole. Ends with 0 if all ended so, with 1 if some ended
with 1, as a failed test does, and nothing was worse, else with the status of that. Worse is also
who does not say what it ran, or ends with 1 without a failure to show.
"""

import concurrent.futures
import importlib.util
import os
import re
import subprocess
import sys
import unittest

NOT_A_RESULT = 70


def names(script):
    """What unittest would run of the script, as it takes it on a command line."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    spec = importlib.util.spec_from_file_location("the_script", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def flat(suite):
        for one in suite:
            if isinstance(one, unittest.TestSuite):
                yield from flat(one)
            else:
                yield one.id().removeprefix("the_script.")

    return list(flat(unittest.defaultTestLoader.loadTestsFromModule(module)))


def run(script, name):
    done = subprocess.run([sys.executable, script, name], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    print(done.stdout, end="", flush=True)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    ran = re.search(r"^Ran \d+ tests? in ", done.stdout, re.MULTILINE)
    failed = re.search(r"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): ", done.stdout, re.MULTILINE)
    if (status == 0 and not ran) or (status == 1 and not failed):
        print(f"apart.py: {name} ended with {status}, and shows no result", flush=True)
        return NOT_A_RESULT
    return status


def main():
    count, script = int(sys.argv[1]), sys.argv[2]
    tests = names(script)
    if not tests:
        sys.exit(f"apart.py: no tests in {script}")
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        statuses = list(pool.map(lambda name: run(script, name), tests))
    sys.exit(max((status for status in statuses if status != 1), default=0) or max(statuses))


if __name__ == "__main__":
    main()
