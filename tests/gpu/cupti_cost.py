#!/usr/bin/env python3
"""What CUPTI's calls cost on this driver, and what tracing leaves behind: cupti_cost.py

In a process of its own for each row a loop launches small kernels before kinds of activities are
enabled, while they are, and after they were disabled again; with `finalized`, after cuptiFinalize()
as well. Rows take turns (turns.py). Times are in us; the calls are those of lull's windows, in
their order (preload/cupti/tracing.cc)."""

import ctypes
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

from mapped import mapped
from turns import turn

KINDS = {"driver": 4, "runtime": 5, "memcpy": 1, "memset": 2, "concurrent_kernel": 10,
         "graph_trace": 51, "synchronization": 38}
WINDOW = [kind for kind in KINDS if kind != "graph_trace"]  # no_graph_trace.md
ROWS = [[], ["concurrent_kernel"], ["driver"], ["runtime"], ["memcpy", "memset"],
        ["synchronization"], ["concurrent_kernel", "memcpy", "memset"],
        ["concurrent_kernel", "runtime"], ["concurrent_kernel", "driver"],
        [kind for kind in WINDOW if kind != "driver"],
        [kind for kind in WINDOW if kind != "synchronization"], WINDOW]
BUFFER, LAUNCHES = 1 << 20, 2000

REQUESTED = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p),
                             ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t))
COMPLETED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
                             ctypes.c_size_t, ctypes.c_size_t)


class Cupti:
    def __init__(self):
        self.library, self.bytes, self.buffers = mapped("libcupti.so"), 0, []
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


class Loop:
    def __init__(self):
        self._small = torch.zeros(16, device="cuda")
        self.launch_us()

    def launch_us(self, times=9):
        took = []
        for _ in range(times):
            torch.cuda.synchronize()
            start = time.perf_counter_ns()
            for _ in range(LAUNCHES):
                self._small.add_(1)
            torch.cuda.synchronize()
            took.append((time.perf_counter_ns() - start) / 1e3 / LAUNCHES)
        return statistics.median(took)


def measure(kinds, finalize):
    loop, cupti = Loop(), Cupti()
    with turn():
        row = {"kinds": kinds, "before": loop.launch_us()}
        row["register"] = cupti.call("cuptiActivityRegisterCallbacks", cupti.requested,
                                     cupti.completed)
        row["enable"] = sum(cupti.call("cuptiActivityEnable", KINDS[kind]) for kind in kinds)
        row["while"] = loop.launch_us()
        row["flush"] = cupti.call("cuptiActivityFlushAll", 0)
        row["disable"] = sum(cupti.call("cuptiActivityDisable", KINDS[kind])
                             for kind in reversed(kinds))
        row["flush_forced"] = cupti.call("cuptiActivityFlushAll", 1)
        row["after"] = loop.launch_us()
        if finalize:
            row["finalize"] = cupti.call("cuptiFinalize")
            row["finalized"] = loop.launch_us()
        row["bytes"] = cupti.bytes
    print(json.dumps(row))


def main():
    if len(sys.argv) > 1:
        kinds = [kind for kind in sys.argv[1].split(",") if kind]
        return measure(kinds, finalize=sys.argv[2:] == ["finalize"])
    with tempfile.TemporaryDirectory(prefix="lull-turns-") as folder:
        processes = [subprocess.Popen([sys.executable, __file__, ",".join(kinds), *more],
                                      env={**os.environ, "LULL_GPU_TURNS": folder},
                                      stdout=subprocess.PIPE, text=True)
                     for kinds, more in [(kinds, []) for kinds in ROWS] + [(WINDOW, ["finalize"])]]
        while (len(glob.glob(os.path.join(folder, "ready.*"))) <
               sum(process.poll() is None for process in processes)):
            time.sleep(0.1)
        open(os.path.join(folder, "go"), "w").close()
        rows = [json.loads(process.communicate()[0]) for process in processes]
    print(f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}\n")
    columns = ("before", "while", "after", "finalized", "register", "enable", "disable", "flush",
               "flush_forced", "finalize")
    print("| kinds |", " | ".join(column.replace("_", " ") for column in columns), "|")
    print("|---|" + "---|" * len(columns))
    for row in rows:
        print(f"| {', '.join(row['kinds']) or 'none'} |",
              " | ".join(f"{row[column]:.1f}" if column in row else "" for column in columns), "|")


if __name__ == "__main__":
    main()
