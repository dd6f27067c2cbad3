#!/usr/bin/env python3
"""How long HTA 0.5 takes to load a trace, beside `lull import` and `lull report` of it with
a collector that has to be started first: in turn, medians of all rounds, and their ratios.
Times of the processor are those of all processes. HTA's own imports are not counted.

  import_speed.py [--rounds N] [--lull PATH] TRACE.json.gz

Needs the peers' environment (install)."""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.environ.get("LULL_PEERS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "lull", "peers")
TICK = os.sysconf("SC_CLK_TCK")
LOAD = """
import contextlib, resource, sys, time, warnings
warnings.simplefilter("ignore")
with contextlib.redirect_stdout(sys.stderr):
    from hta.trace_analysis import TraceAnalysis
    wall, cpu = time.monotonic(), time.process_time()
    TraceAnalysis(trace_dir=sys.argv[1], include_last_profiler_step=True)
print(time.monotonic() - wall, time.process_time() - cpu,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def hta(trace):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(trace, os.path.join(folder, "rank-0.json.gz"))
        done = subprocess.run([os.path.join(VENV, "bin", "python"), "-c", LOAD, folder],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True)
    wall, cpu, peak = map(float, done.stdout.split())
    return {"wall": wall, "cpu": cpu, "largest": peak, "sum": peak}


def collector_of(runtime):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"--private" in words and any(runtime.encode() in word for word in words):
            return int(pid)
    raise SystemExit("the collector is not there")


def usage_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        peak = next(line.split()[1] for line in file if line.startswith("VmHWM:"))
    return (int(fields[11]) + int(fields[12])) / TICK, int(peak)


def run(command, environment):
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    out = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return out, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def lull(binary, trace):
    with tempfile.TemporaryDirectory() as folder:
        runtime = os.path.join(folder, "run")
        os.mkdir(runtime, 0o700)
        environment = {**os.environ, "LULL_RUNTIME_DIR": runtime, "XDG_DATA_HOME": folder}
        begun = time.monotonic()
        job, import_cpu, import_peak = run([binary, "import", "--quiet", trace], environment)
        _, report_cpu, report_peak = run([binary, "report", job.strip()], environment)
        wall = time.monotonic() - begun
        pid = collector_of(runtime)
        cpu, peak = usage_of(pid)
        os.kill(pid, signal.SIGTERM)
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)
    return {"wall": wall, "cpu": import_cpu + report_cpu + cpu,
            "largest": max(import_peak, report_peak, peak),
            "sum": max(import_peak, report_peak) + peak}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lull", default=os.path.join(ROOT, "build", "cli", "lull"))
    parser.add_argument("trace")
    options = parser.parse_args()
    theirs, ours = [], []
    for _ in range(options.rounds):
        theirs.append(hta(options.trace))
        ours.append(lull(options.lull, options.trace))
    print(f"{'':24}{'HTA':>10}{'lull':>10}{'ratio':>8}")
    for key, what, unit in (("wall", "wall, s", 1), ("cpu", "processor, s", 1),
                            ("largest", "largest process, MB", 1000),
                            ("sum", "all processes, MB", 1000)):
        their, our = (statistics.median(one[key] for one in side) / unit
                      for side in (theirs, ours))
        print(f"{what:24}{their:10.3f}{our:10.3f}{their / our:8.2f}")


if __name__ == "__main__":
    sys.exit(main())
