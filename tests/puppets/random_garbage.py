"""Random work for the simulated device in Python, with garbage: LOG FIRST_SEED SEEDS.

The same story as random_work.cu, by one thread: it launches, copies, synchronises,
allocates, sleeps, computes, and collects garbage, by call and by allocation.
libtrue_waits.so is to be preloaded behind liblull.so. LOG is that of random_work.cu, and
  gc TID START END LINE LATER_START LATER_END
                             a collection ran, which this line set off; moments before and
                             behind lull's own
  ran TID START END NAME     the thread computed, or made nodes
"""

import ctypes
import gc
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from trainer import DEVICE_TO_HOST, HOST_TO_DEVICE, Dim3, Kernel, check  # noqa: E402

BYTES = 1 << 20
LONG_DELAY_NS = 5000
LONG_LOOK_NS = 40000
FRAME_OF_LINE = sys._getframe
now_ns = time.monotonic_ns

cuda = ctypes.CDLL("libcudart.so.12")
next_kernel_ns = ctypes.CDLL("libcuda.so.1").lull_sim_next_kernel_ns
next_kernel_ns.argtypes = [ctypes.c_int64]


class TrueWait(ctypes.Structure):
    _fields_ = [("start_ns", ctypes.c_int64), ("end_ns", ctypes.c_int64)]


class MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p),
                ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


last_true_wait = ctypes.CDLL("libtrue_waits.so").last_true_wait
last_true_wait.restype = TrueWait


class TrueCollections(object):
    """What tests/puppets/true_collections.cc tells."""

    def __init__(self):
        self.library = ctypes.PyDLL("libtrue_collections.so")
        self.method = MethodDef(
            b"note_collection",
            ctypes.cast(self.library.lull_note_collection, ctypes.c_void_p), 1, None)
        constructor = ctypes.pythonapi.PyCFunction_NewEx
        constructor.restype = ctypes.py_object
        constructor.argtypes = [ctypes.POINTER(MethodDef), ctypes.c_void_p, ctypes.c_void_p]
        self.callback = constructor(ctypes.byref(self.method), None, None)

    def spans(self):
        """(start, end, later start, later end): the callback stands before lull's and behind."""
        count = ctypes.c_uint64.in_dll(self.library, "lull_collection_moments").value
        moments = (ctypes.c_int64 * count).in_dll(self.library, "lull_collection_moments_ns")
        return list(zip(moments[::4], moments[2::4], moments[1::4], moments[3::4]))


class Log(object):
    def __init__(self):
        self.tid = threading.get_native_id()
        self.rows = []
        self.true_collections, self.collections = TrueCollections(), []
        self.schedstat = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self.delay_ns, self.looked_ns, self.delays_ns = self.run_delay(), now_ns(), 0

    def write(self, what, *numbers):
        self.rows.append((what, self.tid) + numbers)

    def call(self):
        """Its line makes the thread's next call."""
        self.line = FRAME_OF_LINE(1).f_lineno
        self.before_ns = now_ns()

    def returned(self, error):
        """What call() announced has returned."""
        self.write("call", self.line, self.before_ns, now_ns())
        check(error)

    def run_delay(self):
        return int(os.pread(self.schedstat, 96, 0).split()[1])

    def look(self):
        """What run_delay() says. One that takes long is a wait in lull's eyes."""
        start, delay, end = now_ns(), self.run_delay(), now_ns()
        if end - start > LONG_LOOK_NS:
            self.write("late", start, end)
        return delay

    def look_for_delays(self):
        delay, now = self.look(), now_ns()
        if delay - self.delay_ns > LONG_DELAY_NS:
            self.write("late", self.looked_ns, now)
        self.delays_ns += delay - self.delay_ns
        self.delay_ns, self.looked_ns = delay, now

    def slept(self, line, before_ns, after_ns):
        wait = last_true_wait()
        self.write("sleep", wait.start_ns, wait.end_ns, line, before_ns, after_ns)
        delay = self.look()  # that of waking up belongs to the wait
        self.delays_ns += delay - self.delay_ns
        self.delay_ns = delay

    def collection(self, phase, _):
        """Which line set it off; when, the callback after this one notes."""
        if phase == "start":
            frame = FRAME_OF_LINE(1)
            while frame.f_code.co_filename != __file__:  # the standard library
                frame = frame.f_back
            self.collections.append(frame.f_lineno)

    def save(self, path):
        self.write("delays", self.delays_ns)
        spans = self.true_collections.spans()
        assert len(spans) == len(self.collections)
        for (start, end, *later), line in zip(spans, self.collections):
            self.write("gc", start, end, line, *later)
        with open(path, "w") as file:
            file.writelines(" ".join(map(str, row)) + "\n" for row in self.rows)


class Node(object):
    def __init__(self):
        self.me = self


def new(constructor, *arguments):
    it = ctypes.c_void_p()
    log.call(); log.returned(constructor(ctypes.byref(it), *arguments))
    return it


class Worker(object):
    def __init__(self):
        self.kernel = Kernel(cuda, b"long_kernel")
        self.memory = new(cuda.cudaMalloc, ctypes.c_size_t(BYTES))
        self.pinned = new(cuda.cudaMallocHost, ctypes.c_size_t(BYTES))
        self.pageable = ctypes.create_string_buffer(BYTES)
        self.stream = new(cuda.cudaStreamCreate)
        self.event = new(cuda.cudaEventCreate)
        self.extra = None
        self.random = random.Random()
        self.nodes = []

    def microseconds(self, low, high):
        return 1000 * self.random.randrange(low, high)

    def launch(self, ns):
        grid, block = Dim3(64, 1, 1), Dim3(256, 1, 1)
        next_kernel_ns(ns)
        log.call(); log.returned(cuda.cudaLaunchKernel(self.kernel.stub, grid, block, None, ctypes.c_size_t(0), self.stream))

    def launches(self):
        for _ in range(self.random.randrange(1, 9)):
            self.launch(self.microseconds(2, 60))

    def long_kernel(self):
        self.launch(self.microseconds(50, 2000))

    def copies(self):
        n = ctypes.c_size_t(4 << self.random.randrange(18))
        how = self.random.randrange(4)
        if how == 0:
            log.call(); log.returned(cuda.cudaMemcpyAsync(self.memory, self.pinned, n, HOST_TO_DEVICE, self.stream))
        elif how == 1:
            log.call(); log.returned(cuda.cudaMemcpyAsync(self.pinned, self.memory, n, DEVICE_TO_HOST, self.stream))
        elif how == 2:
            log.call(); log.returned(cuda.cudaMemcpyAsync(self.memory, self.pageable, n, HOST_TO_DEVICE, self.stream))
        else:
            log.call(); log.returned(cuda.cudaMemcpyAsync(self.pageable, self.memory, n, DEVICE_TO_HOST, self.stream))
            log.call(); log.returned(cuda.cudaStreamSynchronize(self.stream))

    def memset(self):
        log.call(); log.returned(cuda.cudaMemsetAsync(self.memory, 0, ctypes.c_size_t(BYTES), self.stream))

    def synchronize_stream(self):
        log.call(); log.returned(cuda.cudaStreamSynchronize(self.stream))

    def synchronize_device(self):
        log.call(); log.returned(cuda.cudaDeviceSynchronize())

    def synchronize_event(self):
        log.call(); log.returned(cuda.cudaEventRecord(self.event, self.stream))
        self.compute(self.microseconds(1, 200))
        log.call(); log.returned(cuda.cudaEventSynchronize(self.event))

    def allocate(self):
        if self.extra is None:
            self.extra = new(cuda.cudaMalloc, ctypes.c_size_t(BYTES))
        else:
            log.call(); log.returned(cuda.cudaFree(self.extra))
            self.extra = None

    def nap(self):
        seconds = self.microseconds(150, 3000) / 1e9
        line, before_ns = FRAME_OF_LINE().f_lineno + 1, now_ns()
        time.sleep(seconds)
        log.slept(line, before_ns, now_ns())

    def compute(self, ns=None):
        start = now_ns()
        end = start + (ns or self.microseconds(1, 600))
        while now_ns() < end:
            pass
        log.write("ran", start, now_ns(), "compute")

    def collect(self):
        start = now_ns()
        self.nodes = [Node() for _ in range(self.random.randrange(20000))]
        log.write("ran", start, now_ns(), "nodes")
        self.launch(self.microseconds(2, 400))
        gc.collect(self.random.randrange(3))

    def litter(self):
        """Until a collection begins by itself, and on."""
        start = now_ns()
        for _ in range(self.random.randrange(10000)):
            Node()
        log.write("ran", start, now_ns(), "nodes")

    def act(self):
        self.random.choice((
            self.launches, self.launches, self.launches, self.long_kernel, self.copies,
            self.memset, self.synchronize_stream, self.synchronize_device,
            self.synchronize_event, self.allocate, self.nap, self.collect, self.collect,
            self.litter, self.litter, self.compute))()

    def run(self, seed):
        self.random.seed(seed)
        self.launches()
        for _ in range(40):
            self.act()
            log.look_for_delays()
        log.call(); log.returned(cuda.cudaDeviceSynchronize())


def main(path, first, count):
    worker = Worker()
    gc.set_threshold(5000, 3, 3)
    gc.callbacks[:0] = log.collection, log.true_collections.callback
    gc.callbacks.append(log.true_collections.callback)
    # The first operation, then a gap in which a report may begin.
    worker.launch(10000)
    worker.compute(30000000)
    for seed in range(first, first + count):
        worker.run(seed)
        worker.compute(3000000)
    # A last operation that is long enough for a report to end within it.
    worker.launch(40000000)
    log.call(); log.returned(cuda.cudaDeviceSynchronize())
    log.look_for_delays()
    gc.disable()
    log.save(path)


log = Log()
if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
