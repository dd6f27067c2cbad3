#!/usr/bin/env python3
"""Runs a test that compares measured times, and once more if a comparison failed.

    again.py LOG COMMAND...

Somebody else's work on the machine makes such a comparison fail at times. Only exit status
1, a comparison, is tried again: a crash or a test that hangs is believed at once. What
failed at first is appended to LOG, and tools/test tells it at its end: nobody should get
used to it.
"""

import subprocess
import sys


def main():
    log, command = sys.argv[1], sys.argv[2:]
    status = subprocess.run(command, check=False).returncode
    if status == 1:
        print("again.py: failed; once more, since it compares times", flush=True)
        sys.stderr.flush()
        status = subprocess.run(command, check=False).returncode
        with open(log, "a", encoding="utf-8") as file:
            outcome = "passed" if status == 0 else "failed"
            file.write(f"failed at first, then {outcome}: {' '.join(command[1:])}\n")
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
