"""A random training of ranks that communicate by NCCL, in which one rank is late now and then:

    nccl_random.py --store PATH --seed SEED [--ranks N] [--steps N]

The seed tells everything: the kernels of a step, the collectives, which rank is late, by what
and how often. Each rank writes PATH.RANK as nccl_ranks.py does, whose training this is;
Plan(SEED, RANKS) is what the ranks follow.
"""

import argparse
import contextlib
import gc
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nccl_ranks  # noqa: E402

CAUSES = ("sleep", "gc", "lock", "read", "code", "kernels")


def ready_ns():
    """How long this thread was ready and had no processor, so far."""
    with open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1])


class Plan(object):
    def __init__(self, seed, ranks):
        random_ = random.Random(seed)
        self.late = random_.randrange(ranks)
        self.cause = random_.choice(CAUSES)
        self.every = random_.randint(4, 8)
        self.pause_ms = random_.uniform(25, 60)
        self.forward = random_.randint(1, 6)
        self.buckets = [(random_.randint(1, 6), 1 << random_.randint(10, 21))
                        for _ in range(random_.randint(1, 3))]


class Random(nccl_ranks.Training):
    def __init__(self, options, rank, ranks):
        self.plan = Plan(options.seed, ranks)
        super(Random, self).__init__(options, rank, ranks)
        nccl_ranks.BUCKETS = [floats for _, floats in self.plan.buckets]
        self.ready = [self.event() for _ in self.plan.buckets]
        self.objects = []
        if rank == self.plan.late and self.plan.cause == "gc":
            self.objects = [[] for _ in range(20000)]  # of which each collection goes through
        self.lock = threading.Lock()
        self.pipe = os.pipe()

    def load_batch(self, step):
        if self.rank != self.plan.late or step % self.plan.every != self.plan.every - 1:
            return
        self.step_now = step
        getattr(self, "by_" + self.plan.cause)(self.plan.pause_ms / 1e3)

    @contextlib.contextmanager
    def pause(self):
        start, ready = time.monotonic_ns(), ready_ns()
        yield
        self.pauses.append((self.step_now, start, time.monotonic_ns(), ready_ns() - ready))

    def by_sleep(self, seconds):
        with self.pause():
            time.sleep(seconds)  # SITE: sleep

    def by_gc(self, seconds):
        end = time.monotonic() + seconds
        with self.pause():
            while time.monotonic() < end:
                gc.collect()

    # Until the other thread runs, this one waits for that: it is none of the cause.
    def by_lock(self, seconds):
        self.lock.acquire()
        other = threading.Timer(seconds, self.lock.release)
        other.start()
        with self.pause():
            self.lock.acquire()  # SITE: lock
        self.lock.release()
        other.join()

    def by_read(self, seconds):
        other = threading.Timer(seconds, os.write, (self.pipe[1], b"x"))
        other.start()
        with self.pause():
            os.read(self.pipe[0], 1)  # SITE: read
        other.join()

    def by_code(self, seconds):
        end = time.monotonic() + seconds
        with self.pause():
            while time.monotonic() < end:
                sum(range(100))  # SITE: code

    def by_kernels(self, seconds):
        with self.pause():
            for _ in range(int(seconds / 200e-6)):
                self.kernels["forward_kernel"].launch(self.compute)  # SITE: kernels

    def forward(self):
        for _ in range(self.plan.forward):
            self.kernels["forward_kernel"].launch(self.compute)  # SITE: forward

    def backward(self):
        for bucket, (kernels, floats) in enumerate(self.plan.buckets):
            for _ in range(kernels):
                self.kernels["backward_kernel"].launch(self.compute)  # SITE: backward
            nccl_ranks.check(self.cuda.cudaEventRecord(self.ready[bucket], self.compute))
            nccl_ranks.check(self.cuda.cudaStreamWaitEvent(self.exchange, self.ready[bucket], 0))
            self.data.all_reduce(self.memory, floats, self.exchange)  # SITE: bucket


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    options.tensor_parallel = 1
    if "RANK" in os.environ:
        sys.exit(Random(options, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])).run())
    started = [subprocess.Popen([sys.executable, "-S", *sys.argv],
                                env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                     "WORLD_SIZE": str(options.ranks)})
               for rank in range(options.ranks)]
    sys.exit(max(abs(one.wait()) for one in started))


if __name__ == "__main__":
    main()
