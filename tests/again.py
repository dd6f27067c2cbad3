#!/usr/bin/env python3
"""Runs a test that compares measured times, and up to twice more while only such comparisons fail.

    again.py [--beside LOCK] LOG COMMAND...

Somebody else's work on the machine makes such a comparison fail at times. COMMAND is a script
of unittest; it is tried again where it ended with 1, and each failure is one of assertLess,
assertGreater or assertAlmostEqual on two numbers. An exception, a time-out, a status or a
count that should have been equal, a crash: all these are believed at once. What failed at
first is appended to LOG, and tools/test tells it at its end: nobody should get used to it.

--beside: the first try may be made beside others that have the same LOCK, as there are
processors enough for two of them most of the time. Each further try is made alone: it waits until
those that run are over, and none begins before it is.
"""

import contextlib
import fcntl
import re
import subprocess
import sys

NUMBER = r"-?\d[\d.]*(?:e[+-]?\d+)?"
COMPARISON = re.compile(rf"AssertionError: {NUMBER} (?:not (?:less|greater) than (?:or equal to )?"
                        rf"{NUMBER}|!= {NUMBER} within {NUMBER} delta)(?!\S)")


def only_comparisons(output):
    """Whether something failed, and nothing but comparisons of numbers did."""
    failures = len(re.findall(r"^FAIL: ", output, re.MULTILINE))
    raised = re.findall(r"^\w[\w.]*(?:Error|Exception|Expired|Interrupt)\b.*$", output,
                        re.MULTILINE)
    return (failures > 0 and not re.search(r"^ERROR: ", output, re.MULTILINE)
            and len(raised) == failures and all(COMPARISON.match(line) for line in raised))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    print(done.stdout, end="", flush=True)
    return done.returncode, done.stdout


@contextlib.contextmanager
def held(path, how):
    if path is None:
        yield
        return
    # The gate: whoever waits to be alone is not overtaken.
    with open(path, "a", encoding="utf-8") as lock, \
            open(path + ".gate", "a", encoding="utf-8") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, how)
        if how == fcntl.LOCK_SH:
            fcntl.flock(gate, fcntl.LOCK_UN)
        yield


def main():
    arguments = sys.argv[1:]
    lock = None
    if arguments[0] == "--beside":
        lock, arguments = arguments[1], arguments[2:]
    log, command = arguments[0], arguments[1:]
    with held(lock, fcntl.LOCK_SH):
        status, output = run(command)
    tries = 1
    while status == 1 and tries < 3 and only_comparisons(output):
        print("again.py: again, since comparisons of times alone failed", flush=True)
        with held(lock, fcntl.LOCK_EX):
            status, output = run(command)
        tries += 1
    if tries > 1:
        with open(log, "a", encoding="utf-8") as file:
            outcome = "passed" if status == 0 else "failed"
            file.write(f"{outcome} at try {tries}: {' '.join(command[1:])}\n")
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
