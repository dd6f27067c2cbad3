"""Known shares of time in known lines, between launches: known_lines.py SECONDS.

On standard output: JSON with how long each function took, by its own clock, and for how
long it slept at least.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from patterns import Device  # noqa: E402

now = time.perf_counter


def decode():
    return sum(range(120000))  # SITE: decode


def augment():
    # Here the list goes, too: it is a tenth of the time, and else the caller's.
    return len(sorted(range(30000, 0, -1), key=abs))  # SITE: augment


def train(seconds):
    device = Device()
    spent = {"decode": 0.0, "augment": 0.0, "nap": 0.0, "asleep": 0.0}
    end = now() + seconds
    while now() < end:
        start = now()
        decode()
        decoded = now()
        augment()
        augmented = now()
        device.launch("short_kernel")
        device.item()
        launched = now()
        time.sleep(0.001)  # SITE: nap
        spent["decode"] += decoded - start
        spent["augment"] += augmented - decoded
        spent["nap"] += now() - launched
        spent["asleep"] += 0.001
    return spent


if __name__ == "__main__":
    print(json.dumps(train(float(sys.argv[1]))))
