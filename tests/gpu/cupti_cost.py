#!/usr/bin/env python3
"""What CUPTI's calls cost on this driver: cupti_cost.py. Prints JSON; times in us.

The same calls in the same order as lull's windows (preload/cupti/tracing.cc), around an eager
loop of small kernels: the first time and the following ones, with the device idle and busy."""

import ctypes
import json
import statistics
import sys
import time

import torch

KINDS = {"driver": 4, "runtime": 5, "memcpy": 1, "memset": 2, "concurrent_kernel": 10,
         "graph_trace": 51, "synchronization": 38}
BUFFER = 1 << 20


def library():
    """The libcupti that PyTorch has mapped."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split()[-1]
            if "libcupti.so" in path:
                return ctypes.CDLL(path)
    sys.exit("cupti_cost: no libcupti is mapped")


REQUESTED = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p),
                             ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t))
COMPLETED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
                             ctypes.c_size_t, ctypes.c_size_t)


class Cupti:
    def __init__(self):
        self.library, self.bytes, self.buffers = library(), 0, []
        self.requested, self.completed = REQUESTED(self._request), COMPLETED(self._complete)

    def _request(self, buffer, size, most):
        memory = ctypes.create_string_buffer(BUFFER + 8)
        self.buffers.append(memory)
        buffer[0] = (ctypes.addressof(memory) + 7) & ~7
        size[0], most[0] = BUFFER, 0

    def _complete(self, _context, _stream, _buffer, _size, valid):
        self.bytes += valid

    def call(self, name, *arguments):
        """Microseconds."""
        start = time.perf_counter_ns()
        result = getattr(self.library, name)(*arguments)
        took = (time.perf_counter_ns() - start) / 1e3
        if result != 0:
            sys.exit(f"cupti_cost: {name}{arguments} gave {result}")
        return took


def main():
    small = torch.zeros(16, device="cuda")
    a = torch.randn(4096, 4096, device="cuda")

    def loop(times=2000):
        """Microseconds for one launch."""
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(times):
            small.add_(1)
        torch.cuda.synchronize()
        return (time.perf_counter_ns() - start) / 1e3 / times

    a @ a
    loop()
    cupti = Cupti()
    result = {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda,
              "launch_without": statistics.median(loop() for _ in range(5)),
              "register": cupti.call("cuptiActivityRegisterCallbacks", cupti.requested,
                                     cupti.completed), "windows": []}
    for busy in (False, False, True, True, False, True):
        torch.cuda.synchronize()
        window = {"busy": busy}

        def timed(what, name, *arguments, busy=busy, window=window):
            if busy:
                for _ in range(8):
                    a @ a
            window[what] = cupti.call(name, *arguments)
            torch.cuda.synchronize()

        for kind, number in KINDS.items():
            timed(f"enable {kind}", "cuptiActivityEnable", number)
        window["launch_with"] = statistics.median(loop() for _ in range(5))
        timed("flush", "cuptiActivityFlushAll", 0)
        timed("flush again", "cuptiActivityFlushAll", 0)
        loop()
        timed("flush of 2000", "cuptiActivityFlushAll", 0)
        for kind, number in reversed(KINDS.items()):
            timed(f"disable {kind}", "cuptiActivityDisable", number)
        timed("flush forced", "cuptiActivityFlushAll", 1)
        window["launch_after"] = statistics.median(loop() for _ in range(5))
        result["windows"].append(window)
    result["bytes"] = cupti.bytes
    # What the calls cost of which kind.
    for kinds in (["concurrent_kernel"], ["runtime"], ["driver"], ["runtime", "driver"],
                  ["concurrent_kernel", "runtime"], ["concurrent_kernel", "driver"]):
        for kind in kinds:
            cupti.call("cuptiActivityEnable", KINDS[kind])
        result["launch_with " + " ".join(kinds)] = statistics.median(loop() for _ in range(5))
        for kind in kinds:
            cupti.call("cuptiActivityDisable", KINDS[kind])
        cupti.call("cuptiActivityFlushAll", 1)
    result["launch_at_the_end"] = statistics.median(loop() for _ in range(5))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
