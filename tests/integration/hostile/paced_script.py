"""Collects garbage N times with threads, subprocesses and files about, and says what came
of it: paced_script.py N"""

import atexit
import gc
import hashlib
import subprocess
import sys
import threading
import time


def spin(results, seed):
    digest = hashlib.sha256(str(seed).encode())
    for _ in range(2000):
        digest.update(digest.digest())
    results.append(digest.hexdigest())


def main():
    rounds = int(sys.argv[1])
    gc.disable()
    atexit.register(lambda: print("the last word", flush=True))
    results, found = [], 0
    for number in range(rounds):
        cycle = []
        cycle.append(cycle)
        del cycle
        found += gc.collect() > 0
        if number % 10 == 0:
            threads = [threading.Thread(target=spin, args=(results, number + i))
                       for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        time.sleep(0.01)
    print("collections", found, "threads", len(results),
          hashlib.sha256("".join(sorted(results)).encode()).hexdigest()[:12])
    with subprocess.Popen(["/bin/sh", "-c", "cat; exit 5"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        print("child", child.communicate(b"hello")[0], child.returncode)
    print("to stderr", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
