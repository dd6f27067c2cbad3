#!/usr/bin/env python3
"""What a ClickHouse of the distribution takes of many collectors: HOSTS of them write an edition
of a job of eight ranks each EVERY seconds, in turn, over one day's partition; parts that were
not merged yet, and how long inserts took.

usage: clickhouse_writers.py [HOSTS [EVERY [SECONDS]]]
Needs tests/clickhouse/install. LULL_BIN names lull; its lulld makes the tables."""

import http.client
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), name) for name in ("clickhouse", "integration")]
import guest
from server import ClickHouse

# Rows of an edition, by table: eight ranks, ten causes, a hundred lines.
ROWS = {"lull_ranks": (8, "rank", "number"), "lull_causes": (10, "cause", "toString(number)"),
        "lull_rank_causes": (80, "rank, cause", "intDiv(number, 10), toString(number % 10)"),
        "lull_lines": (100, "cause, file, line", "'gc', '/code/train.py', number"),
        "lull_syncs": (20, "api, file, line", "'cudaMalloc', '/code/train.py', number"),
        "lull_late": (4, "rank, cause, file, line", "number, 'gc', '/code/train.py', 1"),
        "lull_jobs": (1, "name", "'train'")}
THREADS = 16


class Writers:
    def __init__(self, server, hosts, every):
        self.server, self.hosts, self.every = server, hosts, every
        self.lock, self.number, self.taken, self.errors = threading.Lock(), 0, [], []
        self.began = time.monotonic()
        self.late = 0.0

    def write(self, seconds):
        while True:
            with self.lock:
                number = self.number
                self.number += 1
            due = self.began + number * self.every / self.hosts
            if due > self.began + seconds:
                return
            time.sleep(max(0, due - time.monotonic()))
            self.late = max(self.late, time.monotonic() - due)
            host, edition = number % self.hosts, number // self.hosts
            for table, (rows, columns, values) in ROWS.items():
                key = f"toDate('2026-01-01'), 'host {host}', {edition % 2}, {edition + 1}"
                began = time.monotonic()
                try:
                    self.server.query(
                        f"INSERT INTO {table}_data (day, job, slot, version, {columns}) SELECT "
                        f"{key}, {values} FROM (SELECT number FROM system.numbers LIMIT {rows})")
                except (AssertionError, OSError, http.client.HTTPException) as error:
                    self.errors.append(str(error)[-200:])
                self.taken.append(time.monotonic() - began)

    def run(self, seconds):
        threads = [threading.Thread(target=self.write, args=(seconds,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(1)
            parts = self.server.rows("SELECT max(n) AS most FROM (SELECT table, count() AS n FROM "
                                     "system.parts WHERE active GROUP BY table)")
            most = max(most, int(parts[0]["most"]))
        return most


def main():
    hosts, every, seconds = (float(text) for text in (sys.argv[1:] + ["512", "60", "120"])[:3])
    host = guest.Host()
    with tempfile.TemporaryDirectory(prefix="lull-bench-") as folder:
        server = ClickHouse(folder)
        server.start()
        os.environ.update(server.environment)
        collector = subprocess.Popen(
            [guest.LULLD, "--listen", f"unix:{folder}/run/c.sock", "--database",
             f"{folder}/lull.db", "--clickhouse", server.url], env=os.environ,
            stderr=subprocess.DEVNULL)
        guest.wait_until(lambda: server.rows(
            "SELECT count() AS n FROM system.tables WHERE database = 'default'")[0]["n"]
            == 2 * len(ROWS))
        collector.terminate()
        collector.wait()
        writers = Writers(server, int(hosts), every)
        most = writers.run(seconds)
        taken = sorted(writers.taken)
        began = time.monotonic()
        rows = server.rows("SELECT count() AS n FROM lull_lines")[0]["n"]
        print(f"{int(hosts)} collectors, an edition each {every:.0f} s, {seconds:.0f} s: "
              f"{len(taken)} inserts ({len(taken) / seconds:.0f} a second), "
              f"median {1e3 * statistics.median(taken):.1f} ms, "
              f"99 % {1e3 * taken[len(taken) * 99 // 100]:.0f} ms, late by {writers.late:.1f} s at "
              f"most, {len(writers.errors)} refused; {most} parts of a table at most; "
              f"{rows} lines told in {time.monotonic() - began:.2f} s")
        for error in sorted(set(writers.errors))[:3]:
            print("  ", error)
        server.stop()
    host.close()


if __name__ == "__main__":
    main()
