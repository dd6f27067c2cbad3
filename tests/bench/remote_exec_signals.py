#!/usr/bin/env python3
"""Why lull does not enter CPython 3.14 by sys.remote_exec(): how many signal handlers of
a program wait in vain while somebody calls it (docs/decisions/remote_exec.md).

Needs CPython 3.14 or later. Takes SECONDS (20) with nobody and as long with somebody.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 20
PATIENCE = 1.0  # a handler runs within a millisecond, or after the next signal

VICTIM = """
import os, signal, sys
answer = int(sys.argv[1])
signal.signal(signal.SIGUSR1, lambda number, frame: os.write(answer, b"x"))
os.write(answer, b"!")
def spin():
    n = 0
    while True:
        n += 1
spin()
"""
CALLER = """
import sys, time
end, calls = time.monotonic() + float(sys.argv[3]), 0
while time.monotonic() < end:
    sys.remote_exec(int(sys.argv[1]), sys.argv[2])
    calls += 1
print(calls)
"""


def measure(folder, called):
    """(signals sent, handlers that did not run for PATIENCE, remote_exec calls)"""
    script = os.path.join(folder, "nothing.py")
    with open(script, "w") as file:
        file.write("pass\n")
    answers, answer = os.pipe()
    victim = subprocess.Popen([sys.executable, "-c", VICTIM, str(answer)], pass_fds=[answer])
    os.read(answers, 1)
    caller = None
    if called:
        caller = subprocess.Popen([sys.executable, "-c", CALLER, str(victim.pid), script,
                                   str(SECONDS)], stdout=subprocess.PIPE)
    sent = late = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        victim.send_signal(signal.SIGUSR1)
        sent += 1
        if not select.select([answers], [], [], PATIENCE)[0]:
            late += 1
            victim.send_signal(signal.SIGUSR1)
        os.read(answers, 100)
        time.sleep(0.001)
    calls = int(caller.communicate()[0]) if caller else 0
    victim.kill()
    victim.wait()
    return sent, late, calls


def main():
    if not hasattr(sys, "remote_exec"):
        sys.exit("remote_exec_signals: needs CPython 3.14 or later")
    with tempfile.TemporaryDirectory() as folder:
        for called in (False, True):
            sent, late, calls = measure(folder, called)
            print(f"{calls:7} calls of sys.remote_exec: {late} of {sent} handlers "
                  f"did not run within {PATIENCE:g} s")


if __name__ == "__main__":
    main()
