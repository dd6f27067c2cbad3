"""What a trace of torch.profiler says of its GPUs, by the shortest way: all records in
memory, exact arithmetic, nothing shared with lull."""

import gzip
import json
import sqlite3
from decimal import Decimal

GPU_CATEGORIES = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
CALL_CATEGORIES = {"cuda_runtime", "Runtime", "cuda_driver"}


def load_sqlite(path):
    """Events of the same form from an export of Nsight Systems."""
    events = []
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        there = {name for name, in database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, category in (("KERNEL", "kernel"), ("MEMCPY", "gpu_memcpy"),
                                ("MEMSET", "gpu_memset")):
            table = "CUPTI_ACTIVITY_KIND_" + table
            if table not in there:
                continue
            for start, end, device, pid, correlation in database.execute(
                    f"SELECT start, end, deviceId, globalPid, correlationId FROM {table}"):
                process = pid >> 24
                events.append({"ph": "X", "cat": category, "ts": Decimal(start) / 1000,
                               "dur": Decimal(end - start) / 1000, "process": process,
                               "pid": device,
                               "args": {"device": device,
                                        "correlation": (process, correlation)}})
        for tid, correlation in database.execute(
                "SELECT globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"):
            events.append({"ph": "X", "cat": "cuda_runtime",
                           "args": {"correlation": (tid >> 24, correlation)}})
    return events


def load(path):
    if path.endswith(".sqlite"):
        return load_sqlite(path)
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        trace = json.loads(file.read().decode("utf-8", "replace"), parse_float=Decimal)
    return trace["traceEvents"] if isinstance(trace, dict) else trace


def span_ns(event):
    start = int(event["ts"] * 1000)
    return start, start + int(event["dur"] * 1000)


def device_of(event):
    arguments = event.get("args", {})
    return int(arguments.get("device", arguments.get("fromDevice", event["pid"])))


def is_gpu(event):
    return event.get("ph") == "X" and event.get("cat") in GPU_CATEGORIES


def busy_and_idle_ns(events):
    """{device: (busy, idle)}: the union of its records, and the rest between the first
    start and the last end of any device of its process."""
    processes = {}
    for event in events:
        if is_gpu(event):
            processes.setdefault(event.get("process"), []).append(event)
    result = {}
    for own in processes.values():
        result.update(of_process(own))
    return result


def of_process(events):
    spans = {}
    for event in events:
        spans.setdefault(device_of(event), []).append(span_ns(event))
    first = min(start for device in spans.values() for start, _ in device)
    last = max(end for device in spans.values() for _, end in device)
    result = {}
    for device, stretches in spans.items():
        busy, reach = 0, first
        for start, end in sorted(stretches):
            busy += max(0, end - max(start, reach))
            reach = max(reach, end)
        result[device] = busy, last - first - busy
    return result


def without_launch(events):
    calls = {event.get("args", {}).get("correlation") for event in events
             if event.get("ph") == "X" and event.get("cat") in CALL_CATEGORIES} - {None, 0, -1}
    return sum(1 for event in events if is_gpu(event) and
               event.get("args", {}).get("correlation", 0) not in calls)


def own_gpu_us(events):
    """What ran for each operator that launched it, by the innermost cpu_op around the
    launch; None: for no operator."""
    calls, ran, of_threads = {}, {}, {}
    for event in events:
        if event.get("ph") != "X":
            continue
        category, correlation = event.get("cat"), (event.get("args") or {}).get("correlation")
        if category in ("cpu_op", "Operator"):
            if not event["name"].startswith(("ProfilerStep#", "enumerate(Data", "Optimizer.")):
                end = event["ts"] + event["dur"]
                of_threads.setdefault(str(event["tid"]), []).append(
                    (event["ts"], 0, -end, event["name"]))
        elif category in CALL_CATEGORIES and correlation:
            calls[correlation] = event
        elif category in GPU_CATEGORIES and correlation:
            ran[correlation] = ran.get(correlation, 0) + event["dur"]
    for correlation, event in calls.items():
        if correlation in ran:
            of_threads.setdefault(str(event["tid"]), []).append(
                (event["ts"], 1, correlation, ""))
    sums = {}
    for thread in of_threads.values():
        stack = []
        for start, is_call, key, name in sorted(thread):
            while stack and stack[-1][0] <= start:
                stack.pop()
            if not is_call:
                stack.append((-key, name))
                continue
            names = [n for _, n in stack if not n.startswith("autograd::engine::")]
            name = names[-1].replace("torch::autograd::", "") if names else None
            sums[name] = sums.get(name, 0) + ran[key]
    return sums
