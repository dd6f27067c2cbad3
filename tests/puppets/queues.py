"""Steps that keep a device busy in more than one queue: queues.py WHAT STEPS [...]. Each is a
range of NVTX, "step".

side: 100 kernels on one stream, and one on another that waits for nothing.
devices: 100 kernels on one device, and one on another.
copies: 100 copies and no kernel.
long STEP: 20 kernels that are waited for, until STEP: that is one long kernel, after which the
steps only take time.
graph STEP: the same, but that the long kernel is the second one of a graph.
held: a function on the host, on a stream of its own, wants a lock that a step has while it waits
for the kernels of another.
burst BEFORE FILE: as many kernels as BEFORE says, of which FILE is told; once that is gone
800 more, which are waited for.

QUEUES_CUDART names another libcudart than that of CUDA 12; with QUEUES_KEEP_GIL its functions are
called without giving up the GIL. With QUEUES_WAIT=device steps wait for the whole device.
"""

import ctypes
import itertools
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nvtx  # noqa: E402
from trainer import HOST_TO_DEVICE, Kernel, check  # noqa: E402

LAUNCHES = 100  # a step
NON_BLOCKING = 1
CAPTURE_GLOBAL = 0
COPY_BYTES = 4 << 20


class Queues(object):
    def __init__(self):
        load = ctypes.PyDLL if os.environ.get("QUEUES_KEEP_GIL") else ctypes.CDLL
        self.cuda = load(os.environ.get("QUEUES_CUDART", "libcudart.so.12"))
        self.kernel = Kernel(self.cuda, b"kernel")
        self.other_kernel = Kernel(self.cuda, b"other")
        self.main = self.stream()

    def stream(self):
        stream = ctypes.c_void_p()
        check(self.cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), NON_BLOCKING))
        return stream

    def launch_all(self):
        for _ in range(LAUNCHES):
            self.kernel.launch(self.main)

    def side(self):
        side = self.stream()
        while True:
            yield
            self.launch_all()
            self.other_kernel.launch(side)

    def devices(self):
        check(self.cuda.cudaSetDevice(1))
        other = self.stream()
        while True:
            yield
            check(self.cuda.cudaSetDevice(0))
            self.launch_all()
            check(self.cuda.cudaSetDevice(1))
            self.other_kernel.launch(other)

    def copies(self):
        to, pinned = ctypes.c_void_p(), ctypes.c_void_p()
        size = ctypes.c_size_t(COPY_BYTES)
        check(self.cuda.cudaMalloc(ctypes.byref(to), size))
        check(self.cuda.cudaMallocHost(ctypes.byref(pinned), size))
        while True:
            yield
            for _ in range(LAUNCHES):
                check(self.cuda.cudaMemcpyAsync(to, pinned, size, HOST_TO_DEVICE, self.main))

    def wait(self):
        if os.environ.get("QUEUES_WAIT") == "device":
            check(self.cuda.cudaDeviceSynchronize())
        else:
            check(self.cuda.cudaStreamSynchronize(self.main))

    def held(self):
        side, lock = self.stream(), threading.Lock()

        def want(_):
            with lock:
                pass
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(want)
        while True:
            yield
            with lock:
                check(self.cuda.cudaLaunchHostFunc(side, function, None))
                for _ in range(20):
                    self.kernel.launch(self.main)
                self.wait()
            check(self.cuda.cudaStreamSynchronize(side))
            time.sleep(0.02)

    def long(self):
        return self.waited_for_until(lambda: self.other_kernel.launch(self.main))

    def waited_for_until(self, launch_long):
        for step in itertools.count():
            yield
            if step < int(sys.argv[3]):
                for _ in range(20):
                    self.kernel.launch(self.main)
                self.wait()
            elif step == int(sys.argv[3]):
                launch_long()
            self.cuda.cudaStreamQuery(self.main)
            time.sleep(0.02)

    def graph(self):
        graph, launched = ctypes.c_void_p(), ctypes.c_void_p()
        check(self.cuda.cudaStreamBeginCapture(self.main, CAPTURE_GLOBAL))
        self.kernel.launch(self.main)
        self.other_kernel.launch(self.main)
        check(self.cuda.cudaStreamEndCapture(self.main, ctypes.byref(graph)))
        check(self.cuda.cudaGraphInstantiateWithFlags(ctypes.byref(launched), graph,
                                                      ctypes.c_ulonglong(0)))
        return self.waited_for_until(
            lambda: check(self.cuda.cudaGraphLaunch(launched, self.main)))

    def burst(self):
        yield
        for _ in range(int(sys.argv[3])):
            self.kernel.launch(self.main)
        with open(sys.argv[4], "w") as file:
            file.write("launched")
        while os.path.exists(sys.argv[4]):
            time.sleep(0.001)
        for _ in range(800):
            self.kernel.launch(self.main)
        check(self.cuda.cudaDeviceSynchronize())
        for _ in range(100):  # calls at which it may be noticed what has become of it
            time.sleep(0.001)
            self.kernel.launch(self.main)
        yield


def main():
    queues = Queues()
    step = getattr(queues, sys.argv[1])()
    ranges = nvtx.Ranges()
    next(step)
    for _ in range(int(sys.argv[2])):
        ranges.push(b"step")
        next(step)
        ranges.pop()
    check(queues.cuda.cudaDeviceSynchronize())


if __name__ == "__main__":
    main()
