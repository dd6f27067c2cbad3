#!/usr/bin/env python3
"""One collector, and what the relays of many hosts send it at a fixed rate (fleet_load.cc): the
rate that it takes, its processor time and memory, lag, and what is lost.

    fleet.py [--relays 512] [--ranks 8] [--events 100] [--seconds 600] [--kill-after SECONDS]

`--events` is of a rank and second. `--kill-after` ends the collector (SIGKILL) and starts it
again at once, so that all relays come back together. At the end jobs are asked for what is
stored of them. LULL_BIN, LULLD and LULL_FLEET_LOAD name the
programs. The load takes processors of the same machine: rates are floors."""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time


def stat_of(pid):
    """(seconds of processor time, MiB resident, MiB at most, threads)"""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    ticks = os.sysconf("SC_CLK_TCK")
    return ((int(fields[11]) + int(fields[12])) / ticks, int(lines["VmRSS"].split()[0]) / 1024,
            int(lines["VmHWM"].split()[0]) / 1024, int(lines["Threads"]))


class Collector:
    def __init__(self, folder):
        self.socket = os.path.join(folder, "lulld.sock")
        self.database = os.path.join(folder, "lull.db")
        self.used = 0.0  # by those that are gone
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [os.environ.get("LULLD", "lulld"), "--listen", "unix:" + self.socket,
             "--database", self.database], stderr=subprocess.DEVNULL)
        while not os.path.exists(self.socket):
            time.sleep(0.01)

    def kill(self):
        self.used += stat_of(self.process.pid)[0]
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.start()

    def cpu(self):
        return self.used + stat_of(self.process.pid)[0]

    def disk_mib(self):
        return sum(os.path.getsize(self.database + end) for end in ("", "-wal")
                   if os.path.exists(self.database + end)) / 2**20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--relays", type=int, default=512)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--events", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--kill-after", type=float, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lull-fleet-") as folder:
        collector = Collector(folder)
        load = subprocess.Popen(
            [os.environ.get("LULL_FLEET_LOAD", "fleet_load"), collector.socket,
             str(options.relays), str(options.ranks), str(options.events),
             str(options.seconds)], stdout=subprocess.PIPE, text=True)
        if 0 < options.kill_after < options.seconds:
            killer = threading.Timer(options.kill_after, collector.kill)
            killer.start()
        began, cpu_before, most = time.monotonic(), 0.0, 0.0
        last = {}
        for line in load.stdout:
            last = json.loads(line)
            if last["all"]:
                break
            try:
                cpu, resident, high, threads = stat_of(collector.process.pid)
            except (OSError, ValueError):
                continue  # killed just now
            cpu += collector.used
            most = max(most, high)
            now = time.monotonic()
            print(f"{last['at_s']:5.0f} s: {last['connected']} relays, "
                  f"{last['events_per_second'] / 1e6:.2f} M events/s, "
                  f"lag {last['lag_ms']['p50']:.0f} ms (p99 {last['lag_ms']['p99']:.0f}), "
                  f"lulld {100 * (cpu - cpu_before) / (now - began):.0f} % of a core, "
                  f"{resident:.0f} MiB, {threads} threads, disk {collector.disk_mib():.0f} MiB, "
                  f"largest spool {last['largest_spool_mib']:.1f} MiB, "
                  f"lost {last['lost_percent']:.2f} %, breaks {last['breaks']}, of a relay "
                  f"{last['batches_of_a_relay']['least']} to "
                  f"{last['batches_of_a_relay']['most']} batches", flush=True)
            began, cpu_before = now, cpu
        ranks = options.relays * options.ranks
        cpu = collector.cpu()
        print(f"{ranks} ranks of {options.relays} relays, {options.events:.0f} events/s each, "
              f"{options.seconds:.0f} s: {last['events_per_second'] / 1e6:.3f} M events/s "
              f"acknowledged, {last['lost_percent']:.2f} % lost, lag p50 "
              f"{last['lag_ms']['p50']:.0f}, p99 {last['lag_ms']['p99']:.0f}, at most "
              f"{last['lag_ms']['max']:.0f} ms")
        print(f"lulld: {1e6 * cpu / last['acknowledged_events']:.2f} us an event, "
              f"{100 * cpu / last['at_s']:.0f} % of a core, {most:.0f} MiB at most, "
              f"{collector.disk_mib() * 2**20 / last['acknowledged_events']:.1f} bytes an event "
              f"on disk")
        load.wait()
        ask(collector, options, last)
        collector.process.terminate()
        collector.process.wait()
    return load.returncode


def ask(collector, options, last):
    """What is stored of some jobs, and how long the answers take."""
    per_batch = last["acknowledged_events"] / (
        options.relays * last["batches_of_a_relay"]["most"])
    for number in random.sample(range(1, options.relays + 1), min(3, options.relays)):
        began = time.monotonic()
        done = subprocess.run(
            [os.environ.get("LULL_BIN", "lull"), "report", "--collector",
             "unix:" + collector.socket, "--json", f"job-{number}"],
            stdout=subprocess.PIPE, text=True, check=True)
        stored = json.loads(done.stdout)["losses"]["events_stored"]
        print(f"job-{number}: {stored} events stored ({stored / per_batch:.2f} batches), "
              f"answered in {time.monotonic() - began:.2f} s")


if __name__ == "__main__":
    sys.exit(main())
