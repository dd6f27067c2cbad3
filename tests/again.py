#!/usr/bin/env python3
"""Runs a test that compares measured times, and up to twice more while only such comparisons fail.

    again.py LOG COMMAND...

Somebody else's work on the machine makes such a comparison fail at times. COMMAND is a script
of unittest; it is tried again where it ended with 1, and each failure is one of assertLess,
assertGreater or assertAlmostEqual on two numbers. An exception, a time-out, a status or a
count that should have been equal, a crash: all these are believed at once. What failed at
first is appended to LOG, and tools/test tells it at its end: nobody should get used to it.
"""

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


def main():
    log, command = sys.argv[1], sys.argv[2:]
    status, output = run(command)
    tries = 1
    while status == 1 and tries < 3 and only_comparisons(output):
        print("again.py: again, since comparisons of times alone failed", flush=True)
        status, output = run(command)
        tries += 1
    if tries > 1:
        with open(log, "a", encoding="utf-8") as file:
            outcome = "passed" if status == 0 else "failed"
            file.write(f"{outcome} at try {tries}: {' '.join(command[1:])}\n")
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
