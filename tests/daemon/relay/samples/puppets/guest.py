"""A program under the shim, for samples of it to be looked at.

usage: guest.py SECONDS [fork|exec|leave|thread]
"""

import os
import sys
import threading
import time


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def rest(seconds):
    time.sleep(seconds)  # a wait that is recorded: the shim sees the thread's Python


def work(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        busy(0.02)
        rest(0.001)


def in_the_child(seconds):
    work(seconds)


seconds = float(sys.argv[1])
how = sys.argv[2] if len(sys.argv) > 2 else ""
if how == "fork":
    child = os.fork()
    if child == 0:
        in_the_child(seconds)
        os._exit(0)
    work(seconds)
    os.waitpid(child, 0)
elif how == "exec":
    work(seconds)
    os.execv(sys.executable, [sys.executable, __file__, str(seconds)])
elif how == "leave":
    work(seconds)
    loop = "end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do :; done"
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    os.execve("/bin/sh", ["sh", "-c", loop], environment)
elif how == "thread":
    def storm():
        while True:
            thread = threading.Thread(target=rest, args=(0.0005,))
            thread.start()
            thread.join()
    threading.Thread(target=storm, daemon=True).start()
    work(seconds)
else:
    work(seconds)
print("done")
