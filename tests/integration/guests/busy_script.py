"""Threads, subprocesses, multiprocessing, signals and garbage, with one line of
output for each: what a script does that must not notice lull."""

import gc
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading


def square(number):
    return number * number


def main():
    results = queue.Queue()
    threads = [threading.Thread(target=lambda n=n: results.put(square(n))) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("threads", sum(results.get() for _ in threads))
    done = subprocess.run([sys.executable, "-c", "print('child'); raise SystemExit(4)"],
                          stdout=subprocess.PIPE)
    print("subprocess", done.stdout, done.returncode)
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(square, range(5)))
            pool.close()
            pool.join()
    seen = []
    signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    os.kill(os.getpid(), signal.SIGUSR1)
    print("signals", len(seen))
    for _ in range(10):
        cycle = []
        cycle.append(cycle)
    del cycle
    print("collected", gc.collect() >= 9)
    reader, writer = os.pipe()
    os.close(writer)
    print("read", os.read(reader, 1))
    os.close(reader)


if __name__ == "__main__":
    main()
