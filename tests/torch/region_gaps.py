"""Known idle time of a device in known regions, of record_function and NVTX, nested:
region_gaps.py SECONDS.

On standard output: JSON with how long the program was in each region and in none within
it, by its own clock; "" is outside of all.
"""

import json
import sys
import threading
import time

import torch
from torch.cuda import nvtx
from torch.profiler import record_function

now = time.perf_counter
spent = {}
at, since = "", now()


def enter(path):
    """All from here on is of that path."""
    global at, since
    time_ = now()
    spent[at] = spent.get(at, 0.0) + time_ - since
    at, since = path, time_


def work(ms):
    end = now() + ms / 1e3
    while now() < end:
        pass


def nap(ms):
    time.sleep(ms / 1e3)


def main(seconds):
    numbers = torch.zeros(8, device="cuda")

    def launch():
        numbers.add_(1)

    def feed():
        nap(2)
        launch()

    launch()
    enter("")
    spent.clear()
    end = now() + seconds
    while now() < end:
        with record_function("load"):
            enter("load")
            nap(3)
            launch()
            with record_function("decode"):
                enter("load/decode")
                work(4)
                launch()
            enter("load")
        enter("")
        nvtx.range_push("step")
        enter("step")
        nap(2)
        launch()
        nvtx.range_push("forward")
        enter("step/forward")
        with record_function("attention"):
            enter("step/forward/attention")
            work(3)
            launch()
        enter("step/forward")
        # Another thread, which has none of its own: it is in what is open here.
        thread = threading.Thread(target=feed)
        thread.start()
        thread.join()
        nvtx.range_pop()
        enter("step")
        nvtx.range_pop()
        enter("")
        work(2)
        launch()
    return spent


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]))))
