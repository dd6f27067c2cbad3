"""Ranks of a training on one host that communicate by NCCL, by ctypes, without PyTorch:

    nccl_ranks.py --store PATH [--ranks N] [--steps N] [--tensor-parallel N]
                  [--late RANK [--every N] [--pause-ms MS]] [--die RANK,STEP] [--hang RANK,STEP]

Starts the ranks, unless RANK and WORLD_SIZE are set. Each step is a forward and a backward
pass and an optimizer's kernel; the gradients are reduced in two buckets on a stream of
their own, as DDP does, among the ranks of a tensor-parallel group's place. In each --every-th
step the --late rank pauses on the host. Each rank writes PATH.RANK: its steps and pauses, in
ns of CLOCK_MONOTONIC. Exit status 3: the communicator has an error.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from trainer import Kernel, check  # noqa: E402

FLOAT, SUM = 7, 0
BUCKETS = (1 << 20, 1 << 18)  # floats; the first is ready first
ACTIVATIONS = 1 << 16
FORWARD_KERNELS, BACKWARD_KERNELS = 4, 8


class UniqueId(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 128)]


class Communicator(object):
    def __init__(self, nccl, handle):
        self.nccl, self.handle = nccl, handle

    @classmethod
    def of_all(cls, rank, ranks, store):
        nccl = ctypes.CDLL("libnccl.so.2")
        unique = UniqueId()
        if rank == 0:
            check(nccl.ncclGetUniqueId(ctypes.byref(unique)))
            with open(store + ".new", "wb") as file:
                file.write(bytes(unique))
            os.rename(store + ".new", store)
        while not os.path.exists(store):
            time.sleep(0.005)
        with open(store, "rb") as file:
            unique = UniqueId.from_buffer_copy(file.read())
        handle = ctypes.c_void_p()
        nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
        check(nccl.ncclCommInitRank(ctypes.byref(handle), ranks, unique, rank))
        return cls(nccl, handle)

    def split(self, color, key):
        handle = ctypes.c_void_p()
        check(self.nccl.ncclCommSplit(self.handle, color, key, ctypes.byref(handle), None))
        return Communicator(self.nccl, handle)

    def all_reduce(self, memory, floats, stream):
        check(self.nccl.ncclAllReduce(memory, memory, ctypes.c_size_t(floats), FLOAT, SUM, self.handle, stream))  # SITE: all_reduce

    def error(self):
        error = ctypes.c_int()
        check(self.nccl.ncclCommGetAsyncError(self.handle, ctypes.byref(error)))
        return error.value

    def destroy(self):
        check(self.nccl.ncclCommDestroy(self.handle))


class Training(object):
    def __init__(self, options, rank, ranks):
        self.options, self.rank = options, rank
        self.cuda = ctypes.CDLL("libcudart.so.12")
        devices = ctypes.c_int()
        check(self.cuda.cudaGetDeviceCount(ctypes.byref(devices)))
        check(self.cuda.cudaSetDevice(rank % devices.value))
        self.kernels = {name: Kernel(self.cuda, name.encode())
                        for name in ("forward_kernel", "backward_kernel", "optimizer_kernel")}
        self.compute, self.exchange = self.stream(), self.stream()
        self.ready = [self.event() for _ in BUCKETS]
        self.reduced = self.event()
        self.memory = ctypes.c_void_p()
        check(self.cuda.cudaMalloc(ctypes.byref(self.memory), ctypes.c_size_t(8 << 20)))
        self.world = Communicator.of_all(rank, ranks, options.store)
        self.data, self.tensor = self.world, None
        if options.tensor_parallel > 1:
            group, place = divmod(rank, options.tensor_parallel)
            self.tensor = self.world.split(group, rank)
            self.data = self.world.split(place, rank)
        self.steps, self.pauses = [], []

    def stream(self):
        stream = ctypes.c_void_p()
        check(self.cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), 1))
        return stream

    def event(self):
        event = ctypes.c_void_p()
        check(self.cuda.cudaEventCreateWithFlags(ctypes.byref(event), 2))
        return event

    def load_batch(self, step):
        if (self.rank, step) == self.options.die:
            os.kill(os.getpid(), 9)
        if (self.rank, step) == self.options.hang:
            time.sleep(600)  # SITE: hang
        if self.rank == self.options.late and step % self.options.every == self.options.every - 1:
            start = time.monotonic_ns()
            time.sleep(self.options.pause_ms / 1e3)  # SITE: late
            self.pauses.append((step, start, time.monotonic_ns()))

    def forward(self):
        for _ in range(FORWARD_KERNELS):
            self.kernels["forward_kernel"].launch(self.compute)  # SITE: forward
            if self.tensor:
                self.tensor.all_reduce(self.memory, ACTIVATIONS, self.compute)  # SITE: tensor_parallel

    def backward(self):
        each = BACKWARD_KERNELS // len(BUCKETS)
        for bucket, floats in enumerate(BUCKETS):
            for _ in range(each):
                self.kernels["backward_kernel"].launch(self.compute)  # SITE: backward
            check(self.cuda.cudaEventRecord(self.ready[bucket], self.compute))
            check(self.cuda.cudaStreamWaitEvent(self.exchange, self.ready[bucket], 0))
            self.data.all_reduce(self.memory, floats, self.exchange)  # SITE: bucket

    def optimizer_step(self):
        check(self.cuda.cudaEventRecord(self.reduced, self.exchange))
        check(self.cuda.cudaStreamWaitEvent(self.compute, self.reduced, 0))
        self.kernels["optimizer_kernel"].launch(self.compute)  # SITE: optimizer

    def step(self, step):
        start = time.monotonic_ns()
        self.load_batch(step)
        self.forward()
        self.backward()
        self.optimizer_step()
        check(self.cuda.cudaStreamSynchronize(self.compute))  # SITE: sync
        self.steps.append((start, time.monotonic_ns()))
        return max(each.error() for each in (self.world, self.data, self.tensor) if each)

    def run(self):
        error = 0
        cpu = time.process_time()
        for step in range(self.options.steps):
            error = self.step(step)
            if error:
                break
        known = {"steps": self.steps, "pauses": self.pauses, "error": error,
                 "cpu_s": time.process_time() - cpu}
        with open("%s.%d" % (self.options.store, self.rank), "w") as file:
            json.dump(known, file)
        if error:
            return 3
        for each in {self.tensor, self.data, self.world} - {None}:
            each.destroy()
        return 0


def rank_and_step(text):
    rank, step = text.split(",")
    return int(rank), int(step)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tensor-parallel", type=int, default=1)
    parser.add_argument("--late", type=int, metavar="RANK")
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--pause-ms", type=float, default=50)
    parser.add_argument("--die", type=rank_and_step, metavar="RANK,STEP")
    parser.add_argument("--hang", type=rank_and_step, metavar="RANK,STEP")
    options = parser.parse_args()
    if "RANK" in os.environ:
        training = Training(options, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
        sys.exit(training.run())
    started = [subprocess.Popen([sys.executable, *sys.argv],
                                env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                     "WORLD_SIZE": str(options.ranks)})
               for rank in range(options.ranks)]
    statuses = [one.wait() for one in started]
    sys.exit(next((status for status in statuses if status > 0), min(statuses) and 1))


if __name__ == "__main__":
    main()
