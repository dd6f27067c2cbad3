#!/usr/bin/env python3
"""A hundred hosts, clocks up to a month from the collector's, on a machine that is more than busy:
what a relay makes of the distance between the clocks holds the truth.

    host_clocks_test.py [--trials N]

Hosts are time namespaces of this machine, so that the distance is known."""

import argparse
import multiprocessing
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile

import guest
import hosts_test

MONTH = 30 * hosts_test.DAY
SECONDS = 2  # that a job lasts: readings are taken at its start, after one, and at its end


def spin():
    while True:
        pass


def readings(database, job):
    """[(low, high)] in ns: what may have to be added to the host's clock for the collector's."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as store:
        rows = store.execute("SELECT job_info, reading FROM clock_readings JOIN jobs "
                             "ON jobs.id=job").fetchall()
    found = []
    for info, blob in rows:
        if guest.fields_of(info)[4].decode() == job:
            fields = guest.fields_of(blob)
            found.append([(value >> 1) ^ -(value & 1) for value in (fields[2], fields[3])])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    why = hosts_test.refusal()
    if why:
        print(f"SKIPPED: no hosts made of time namespaces here: {why}", file=sys.stderr)
        return
    print(f"seed {options.seed}")
    draw = random.Random(options.seed)
    host = guest.Host()
    load = [multiprocessing.Process(target=spin, daemon=True)
            for _ in range(2 * (os.cpu_count() or 1))]
    for one in load:
        one.start()
    right, widths = 0, []
    try:
        with tempfile.TemporaryDirectory(prefix="lull-clocks-") as folder:
            address = f"unix:{folder}/run/collector.sock"
            database = os.path.join(folder, "lull.db")
            collector = guest.start_collector(address, database, host.environment)
            for trial in range(options.trials):
                # Back as far as this machine has run: no clock goes below zero.
                with open("/proc/uptime", encoding="utf-8") as file:
                    uptime = int(float(file.read().split()[0]))
                ahead = draw.randrange(-min(uptime - 60, MONTH), MONTH)
                state = os.path.join(folder, f"state{trial}")
                os.mkdir(state)
                name = f"host{trial}"
                subprocess.run(
                    hosts_test.namespace(
                        ahead, "sh", "-c", f'hostname {name} && exec "$@"', "sh", guest.LULL,
                        "run", "--quiet", "--collector", address, "--", sys.executable, "-c",
                        f"import time; time.sleep({SECONDS})"),
                    env=guest.lull_environment(state), check=True, timeout=300)
                told = readings(database, name)
                truth = -ahead * 10**9
                holds = len(told) >= 2 and all(low <= truth <= high for low, high in told)
                right += holds
                widths += [(high - low) / 2e3 for low, high in told]
                if not holds:
                    print(f"{name}: {ahead} s ahead, told {told}", flush=True)
            collector.terminate()
            collector.wait()
    finally:
        for one in load:
            one.kill()
        host.close()
    widths.sort()
    print(f"{right} of {options.trials} right; {len(widths)} readings, half width: median "
          f"{statistics.median(widths):.0f} us, 99th percentile "
          f"{widths[int(0.99 * (len(widths) - 1))]:.0f} us, most {widths[-1]:.0f} us")
    # A bound that is so wide holds anything.
    sys.exit(right < 0.99 * options.trials or statistics.median(widths) > 10_000)


if __name__ == "__main__":
    main()
