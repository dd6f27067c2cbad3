#!/usr/bin/env python3
"""`lulld --clickhouse` and a server that fails in every way that servers do; with real ones
tests/clickhouse deals. Whatever happens, the views would show each job once and whole, and
lulld goes on, and ends."""

import contextlib
import datetime
import http.server
import os
import re
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import guest
from metrics_case import MetricsCase

PUPPETS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "puppets")
READERS = {"UInt8": 1, "UInt32": 4, "UInt64": 8, "Int32": 4, "Date": 2}


def take(form, data, at):
    """(value, where the next one begins) of RowBinary."""
    def length():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    if form == "String":
        size = length()
        if at + size > len(data):
            raise ValueError("a string ends early")
        return data[at:at + size].decode(), at + size
    if form == "Array(String)":
        values = []
        for _ in range(length()):
            value, at = take("String", data, at)
            values.append(value)
        return values, at
    if form == "Nullable(Int32)":
        return (None, at + 1) if data[at] else take("Int32", data, at + 1)
    size = READERS[form]
    if at + size > len(data):
        raise ValueError("a number ends early")
    return int.from_bytes(data[at:at + size], "little", signed=form[0] == "I"), at + size


def put_string(text):
    assert len(text) < 128
    return bytes([len(text)]) + text.encode()


class Store:
    """What a server has been sent: columns and rows of tables, and the faults that it has."""

    def __init__(self):
        self.columns, self.rows, self.views = {}, {}, set()
        self.requests, self.headers = 0, {}
        # Of the request with that number: "refuse", "cut" (the answer), "lose" (it stores, and
        # does not answer), "half" (it stores half of the rows, and answers an error).
        self.faults = {}
        self.failed_inserts = set()  # tables
        # Of inserts of jobs, one after the other: "later" (as of a proxy that waited too
        # long; it is stored with the next fault), "refuse".
        self.faults_of_jobs, self.later = [], []
        self.answer = None  # instead of what would be right: bytes, or None to stay silent
        self.is_silent = False

    def select(self, sql):
        found = re.search(r"FROM system\.columns .*table = '(\w+)'", sql)
        if found:
            if found[1] in self.views:
                return put_string("job") + put_string("String")
            return b"".join(put_string(name) + put_string(form)
                            for name, form in self.columns.get(found[1], []))
        if "system.settings" in sql:
            return b""
        found = re.fullmatch(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*)\) ENGINE = "
                             r"ReplacingMergeTree\(version\) PARTITION BY day ORDER BY (.*)", sql)
        if found:
            self.columns[found[1]] = [tuple(one.split(" ", 1)) for one in found[2].split(", ")]
            self.rows[found[1]] = {}
            return b""
        found = re.match(r"CREATE VIEW IF NOT EXISTS (\w+) AS SELECT .* FROM \1_data FINAL", sql)
        if found:
            self.views.add(found[1])
            return b""
        found = re.fullmatch(r"SELECT job, slot, version, stored_ns, state, parts, live, events_stored "
                             r"FROM lull_jobs_data FINAL WHERE job IN \((.*)\) FORMAT RowBinary", sql)
        ids = {one.strip("'") for one in found[1].split(", ")}
        return b"".join(
            put_string(row["job"]) + row["slot"].to_bytes(8, "little") +
            row["version"].to_bytes(8, "little") + row["stored_ns"].to_bytes(8, "little") +
            row["state"].to_bytes(4, "little") + row["parts"].to_bytes(4, "little") +
            row["live"].to_bytes(1, "little") + row["events_stored"].to_bytes(8, "little")
            for row in self.rows["lull_jobs_data"].values() if row["job"] in ids)

    def insert(self, sql, body, half=False):
        found = re.fullmatch(r"INSERT INTO (\w+) \((.*)\) FORMAT RowBinary", sql)
        columns = self.columns[found[1]]
        assert [name for name, _ in columns] == found[2].split(", ")
        rows, at = [], 0
        while at < len(body):
            row = {}
            for name, form in columns:
                row[name], at = take(form, body, at)
            rows.append(row)
        keys = {"lull_ranks_data": ["rank"], "lull_causes_data": ["cause"],
                "lull_rank_causes_data": ["rank", "cause"],
                "lull_lines_data": ["cause", "file", "line", "function", "api"],
                "lull_syncs_data": ["api", "file", "line", "function"],
                "lull_late_data": ["rank", "cause", "file", "line", "function"]}
        table = self.rows[found[1]]
        for row in rows[:len(rows) // 2] if half else rows:
            key = (row["job"],) if found[1] == "lull_jobs_data" else (
                row["job"], row["slot"], *(row[name] for name in keys[found[1]]))
            if key not in table or table[key]["version"] <= row["version"]:  # Replacing
                table[key] = row

    def view(self, name):
        """The rows that the view would show."""
        jobs = self.rows["lull_jobs_data"].values()
        if name == "lull_jobs":
            return list(jobs)
        named = {(row["job"], row["slot"], row["version"]) for row in jobs}
        return [row for row in self.rows[name + "_data"].values()
                if (row["job"], row["slot"], row["version"]) in named]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # the name that the base class calls
        store = self.server.store
        body = self.rfile.read(int(self.headers["Content-Length"]))
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)).get("query")
        with self.server.lock:
            store.headers = dict(self.headers)
            if store.is_silent:
                fault, answer = "silent", b""
            elif store.answer is not None:
                fault, answer = None, store.answer
            else:
                store.requests += 1
                fault = store.faults.pop(store.requests, None)
                if fault and query:
                    store.failed_inserts.add(query.split()[2])
                if query and "INTO lull_jobs_data" in query and store.faults_of_jobs:
                    fault = "refuse"
                    if store.faults_of_jobs.pop(0) == "later":
                        fault = "proxy"
                        store.later.append((query, body))
                    else:
                        for late in store.later:
                            store.insert(*late)
                        store.later.clear()
                answer = b"Code: 1, e.displayText() = DB::Exception: no\nand more"
                if fault not in ("refuse", "proxy"):
                    try:
                        answer = (store.insert(query, body, fault == "half") if query
                                  else store.select(body.decode())) or b""
                    except Exception as error:
                        self.server.failed.append(f"{query or body[:200]}: {error!r}")
                        raise
        if fault == "silent":
            while store.is_silent and not self.server.ended.wait(0.1):
                pass
            return
        if fault == "lose":
            return
        self.send_response({"refuse": 500, "half": 500, "proxy": 504}.get(fault, 200))
        self.send_header("Content-Length", str(len(answer) + (10 if fault == "cut" else 0)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), Handler)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.store, self.lock, self.failed = Store(), threading.Lock(), []
        self.ended = threading.Event()
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):  # connections that break off
        pass

    def close(self):
        self.ended.set()
        self.shutdown()
        self.server_close()


# A short one becomes a long one in the same process.
TWO_PROGRAMS = """import os, sys
sys.path.insert(0, sys.argv[1])
import patterns
device = patterns.Device()
patterns.sync_bound(device, 10)
device.synchronize()
os.execv(sys.executable, [sys.executable, os.path.join(sys.argv[1], "patterns.py"), "sync", "150"])
"""

# It is idle for as long as it sleeps, whoever else wants the processors.
SLEEPS = """import sys, time
sys.path.insert(0, sys.argv[1])
import patterns
device = patterns.Device()
end = time.monotonic() + 6
while time.monotonic() < end:
    device.launch("long_kernel")
    device.item()
    time.sleep(0.004)
"""


class OwnJobs(MetricsCase):
    """`lull fleet` of a collector that keeps its totals nowhere else."""

    def test_sums_are_those_of_the_verbs(self):
        for number in range(3):
            self.assertEqual(self.start_ranks(f"job {number}", 20).wait(120), 0)
        told = self.ask("fleet", "--top", "0")
        self.assertEqual((told["store"], told["url"]), ("collector", None))
        jobs = self.ask("jobs")["jobs"]
        self.assertEqual({row["id"] for row in told["jobs"]}, {job["id"] for job in jobs})
        idle, lines, causes = 0, {}, {}
        for job in jobs:
            gaps = self.ask("gaps", job["id"], "--phase", "all", "--top", "0")
            idle += round(gaps["gpu"]["idle_ms"] * 1e6)
            for row in gaps["causes"]:
                causes[row["cause"]] = causes.get(row["cause"], 0) + round(row["total_ms"] * 1e6)
            for row in gaps["gaps"]:
                site = row["culprit"] or {}
                key = row["cause"], site.get("file") or None, row["api"] or None
                lines[key] = lines.get(key, 0) + round(row["total_ms"] * 1e6)
        self.assertEqual(round(told["totals"]["idle_ms"] * 1e6), idle)
        self.assertGreater(idle, 0)
        self.assertEqual({row["cause"]: round(row["total_ms"] * 1e6) for row in told["causes"]},
                         {cause: total for cause, total in causes.items() if total})
        found = {}
        for row in told["lines"]:
            key = row["cause"], row["file"], row["api"]
            found[key] = found.get(key, 0) + round(row["total_ms"] * 1e6)
        self.assertEqual(found, {key: total for key, total in lines.items() if total})
        self.assertEqual([row["estimated_ms"] for row in told["lines"]],
                         sorted((row["estimated_ms"] for row in told["lines"]), reverse=True))
        for row in (*told["lines"], *told["causes"]):
            self.assertGreaterEqual(row["estimated_ms"] + 0.001 * row["jobs"], row["total_ms"])
        self.assertEqual([row["jobs"] for row in told["groups"]], [3])
        self.assertEqual({row["key"] for row in self.ask("fleet", "--by", "name")["groups"]},
                         {"job 0", "job 1", "job 2"})
        for tags in ((jobs[0]["id"], "a", "b"), (jobs[1]["id"], "a")):
            done = guest.execute([guest.LULL, "tag", *tags, "--collector", self.listen],
                                 self.host.environment)
            self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual({row["key"]: row["jobs"]
                          for row in self.ask("fleet", "--by", "tag")["groups"]},
                         {"a": 2, "b": 1, "": 1})
        ends = [datetime.datetime.strptime(row["started_at"], "%Y-%m-%dT%H:%M:%S.%fZ") +
                datetime.timedelta(milliseconds=row["duration_ms"]) for row in told["jobs"]]
        day = max(ends).date()
        monday = day - datetime.timedelta(days=day.weekday())
        for by, newest in (("day", day), ("week", monday)):
            groups = self.ask("fleet", "--by", by)["groups"]
            self.assertEqual(sum(row["jobs"] for row in groups), 3)
            self.assertEqual(groups[0]["key"], newest.isoformat())
        one = self.ask("fleet", "--name", "job 1")
        self.assertEqual([row["name"] for row in one["jobs"]], ["job 1"])
        self.assertEqual((one["totals"]["jobs"], one["totals"]["traced_jobs"]), (1, 1))
        many = [word for number in range(33) for word in ("--tag", str(number))]
        done = guest.execute([guest.LULL, "fleet", *many, "--collector", self.listen],
                             self.host.environment)
        self.assertEqual(done.status, 1)
        self.assertIn("give fewer tags", done.stderr)
        text = guest.execute([guest.LULL, "fleet", "--collector", self.listen],
                             self.host.environment)
        self.assertIn("3 jobs that ran in the last 7d", text.stdout)
        self.assertIn("Of this collector alone", text.stdout)

    def test_windows_make_about_what_is_seen_all_the_time(self):
        """Of one program; without the estimate it would be a third. What was before the first
        window is in no estimate."""
        told = {}
        for name, options in (("all", ["--gpu", "continuous"]),
                              ("part", ["--gpu", "window", "--schedule",
                                        "wait=1s,warmup=100ms,active=500ms,repeat=0"])):
            done = guest.execute(
                [guest.LULL, "run", "--collector", self.listen, "--quiet", "--name", name,
                 *options, "--overhead-budget", "100", "--", sys.executable, "-c", SLEEPS,
                 PUPPETS],
                {**self.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"]})
            self.assertEqual(done.status, 0, done.stderr)
            told[name] = self.ask("fleet", "--name", name)["totals"]
        self.assertLess(told["part"]["idle_ms"], 0.6 * told["all"]["idle_ms"])
        self.assertAlmostEqual(told["part"]["gpu_time_ms"], told["all"]["gpu_time_ms"] - 1000,
                               delta=500)
        shares = {name: one["estimated_ms"] / one["gpu_time_ms"] for name, one in told.items()}
        print(f"idle, as estimated by windows and as seen: {shares}")
        self.assertAlmostEqual(shares["part"], shares["all"], delta=0.05)

    def test_two_programs_of_one_process_have_the_gpu_time_of_both(self):
        done = guest.execute(
            [guest.LULL, "run", "--collector", self.listen, "--quiet", "--name", "two programs",
             "--gpu", "continuous", "--overhead-budget", "100", "--", sys.executable, "-c",
             TWO_PROGRAMS, PUPPETS],
            {**self.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"]})
        self.assertEqual(done.status, 0, done.stderr)
        told = self.ask("fleet", "--name", "two programs")["totals"]
        (job,) = self.ask("fleet", "--name", "two programs")["jobs"]
        self.assertGreaterEqual(told["gpu_time_ms"] + 1, told["traced_ms"])
        self.assertLess(told["gpu_time_ms"], 1.05 * job["duration_ms"])
        self.assertLess(told["estimated_ms"], 1.3 * told["idle_ms"])

    def test_what_is_damaged_is_counted_and_left_out(self):
        self.assertEqual(self.start_ranks("sound", 20).wait(120), 0)
        self.assertEqual(self.start_ranks("damaged", 20).wait(120), 0)
        damaged = self.run_of("damaged")
        before = self.ask("fleet")["totals"]["jobs"]
        self.end_collector()
        with sqlite3.connect(self.database) as database:
            changed = database.execute("UPDATE jobs SET job_info = x'ff' WHERE uuid = ?", (damaged,))
            self.assertEqual(changed.rowcount, 1)
        database.close()
        self.start_collector()
        told = self.ask("fleet")
        self.assertEqual((told["totals"]["jobs"], told["damaged_jobs"]), (before - 1, 1))


class Fleet(MetricsCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.options = ["--clickhouse", cls.server.url, "--clickhouse-every", "1"]
        super().setUpClass()
        assert cls.start_ranks("one", 30).wait(120) == 0

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.server.close()
        assert not cls.server.failed, cls.server.failed

    @contextlib.contextmanager
    def another(self, *options, environment=()):
        """A collector beside the other: (process, a function that gives what it said)."""
        with tempfile.TemporaryDirectory(prefix="lull-other-") as folder:
            with open(os.path.join(folder, "errors"), "w+", encoding="utf-8") as errors:
                other = subprocess.Popen(
                    [guest.LULLD, "--listen", f"unix:{folder}/run/c.sock", "--database",
                     f"{folder}/lull.db", "--log-level", "info", *options],
                    env={**self.host.environment, **dict(environment)}, stderr=errors)
                other.listen = f"unix:{folder}/run/c.sock"

                def said():
                    errors.seek(0)
                    return errors.read()
                try:
                    yield other, said
                finally:
                    if other.poll() is None:
                        other.kill()
                    other.wait()

    def whole(self, store, name):
        """The row of the job once its end is there, after a look at all rows of it."""
        def there():
            with self.server.lock:
                return [row for row in store.rows.get("lull_jobs_data", {}).values()
                        if row["name"] == name and row["ended"]]
        (row,) = guest.wait_until(there, 60)
        with self.server.lock:
            for table in ("lull_causes", "lull_lines"):
                self.assertEqual(sum(one["total_ns"] for one in store.view(table)
                                     if one["job"] == row["job"]), row["idle_ns"], table)
            ranks = [one for one in store.view("lull_ranks") if one["job"] == row["job"]]
            self.assertEqual(sorted(one["rank"] for one in ranks), [0, 1])
            self.assertEqual(sum(one["idle_ns"] for one in ranks), row["idle_ns"])
            self.assertEqual(sum(one["blocked_ns"] for one in store.view("lull_syncs")
                                 if one["job"] == row["job"]), row["sync_blocked_ns"])
        return row

    def test_has_the_numbers_of_the_verbs(self):
        row = self.whole(self.server.store, "one")
        gaps = self.ask("gaps", row["job"], "--phase", "all")
        self.assertEqual(row["idle_ns"], round(gaps["gpu"]["idle_ms"] * 1e6))
        self.assertGreater(row["idle_ns"], 0)
        self.assertEqual((row["exit_status"], row["ranks"], row["run"]), (0, 2, row["job"]))
        self.assertEqual(row["day"], row["start_unix_ns"] // (86_400 * 10**9))

    def test_whatever_fails_each_job_is_there_once_and_whole(self):
        """Of each round one request fails, another one each time: those about tables (now and
        then), about what is there, and each insert. With a new job for each way of failing."""
        store = self.server.store
        self.whole(store, "one")
        for fault in ("refuse", "cut", "lose", "half"):
            name = f"with {fault}"
            with self.server.lock:
                first = request = store.requests
                store.faults, store.failed_inserts = {}, set()
                for of_round in (1, 5, 10, 15, *range(17, 28)):
                    request += of_round
                    store.faults[request] = fault
            self.assertEqual(self.start_ranks(name, 20).wait(120), 0)
            self.whole(store, name)
            with self.server.lock:
                store.faults = {}
                print(f"{fault}: {store.requests - first} requests, failed inserts into "
                      f"{sorted(store.failed_inserts)}")
                tables = {table for table, rows in store.rows.items() if rows}
                self.assertEqual(store.failed_inserts, tables)
        with self.server.lock:
            jobs = store.view("lull_jobs")
        self.assertEqual(len({row["job"] for row in jobs}), len(jobs))

    def test_what_was_told_of_a_job_stays_where_its_database_is_replaced(self):
        """Its relay goes on, and the job is there anew, without what was before."""
        store = self.server.store

        def row():
            with self.server.lock:
                found = [one for one in store.view("lull_jobs") if one["name"] == "goes on"]
            return found[0] if found else None
        with tempfile.TemporaryDirectory(prefix="lull-another-") as folder:
            listen, database = f"unix:{folder}/run/c.sock", os.path.join(folder, "lull.db")

            def start():
                with open(os.path.join(folder, "errors"), "a", encoding="utf-8") as errors:
                    return subprocess.Popen(
                        [guest.LULLD, "--listen", listen, "--database", database,
                         "--clickhouse", self.server.url, "--clickhouse-every", "1"],
                        env=self.host.environment, stderr=errors)

            def said():
                with open(os.path.join(folder, "errors"), encoding="utf-8") as errors:
                    return errors.read()
            collector = start()
            try:
                guest.wait_until(lambda: os.path.exists(f"{folder}/run/c.sock"))
                job = subprocess.Popen(
                    [guest.LULL, "run", "--collector", listen, "--quiet", "--name", "goes on",
                     "--gpu", "continuous", "--", sys.executable,
                     os.path.join(PUPPETS, "patterns.py"), "sync", "1500"],
                    env={**self.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"]},
                    stdout=subprocess.DEVNULL)
                # More than are stored afterwards, when most are lost: once 8,600 in 34 s, beside
                # programs that took both processors.
                guest.wait_until(lambda: row() and row()["events_stored"] > 30_000, 60)
                collector.send_signal(signal.SIGTERM)
                self.assertEqual(collector.wait(60), 0)
                before = row()
                for name in os.listdir(folder):
                    if name.startswith("lull.db") and not name.endswith(".tokens"):
                        os.unlink(os.path.join(folder, name))
                collector = start()
                self.assertEqual(job.wait(120), 0)
                guest.wait_until(lambda: "is not told to" in said(), 60)
                time.sleep(2)  # rounds that could tell it
                self.assertEqual(said().count("is not told to"), 1, said())
                self.assertEqual(row(), before)
            finally:
                collector.kill()
                collector.wait()

    def test_an_insert_that_comes_late_changes_nothing(self):
        """The job's row of one edition comes when the rows of the next are there and its own
        is not."""
        store = self.server.store
        self.whole(store, "one")
        with self.server.lock:
            store.faults_of_jobs = ["later", "refuse"]
        self.assertEqual(self.start_ranks("late", 20).wait(120), 0)
        guest.wait_until(lambda: not store.faults_of_jobs)
        self.whole(store, "late")
        with self.server.lock:
            self.assertFalse(store.later)

    def test_answers_without_sense_are_told_once_and_survived(self):
        store = self.server.store
        self.whole(store, "one")
        cases = [(b"\xff" * 12, "ends within a row"), (b"\x7fshort", "ends within a row"),
                 (b"\x04name\x06String" * 3, "other columns"),
                 *[(b"a" * 70_000_000, "body limit exceeded")] * 3]
        for answer, why in cases:
            with self.server.lock:
                store.answer = answer  # before it asks for the first time
            with self.another("--clickhouse", self.server.url, "--clickhouse-every", "1") as (
                    other, said):
                try:
                    guest.wait_until(lambda: "do not arrive" in said() or other.poll() is not None,
                                     60)
                    time.sleep(2.5)
                finally:
                    with self.server.lock:
                        store.answer = None
                self.assertIsNone(other.poll(), said())
                told = [line.split("do not arrive")[1] for line in said().splitlines()
                        if "do not arrive" in line]
                self.assertEqual(len(told), 1, said())
                self.assertIn(why, told[0])
                self.assertLess(len(said()), 2000)
                guest.wait_until(lambda: " again" in said())

    def test_who_asks_about_the_fleet_hears_what_the_server_says(self):
        store = self.server.store
        self.whole(store, "one")
        for answer, why in ((b"\x05", "ends within a row"), (b"<html>" * 50, "no row of numbers"),
                            (b"a" * 70_000_000, "body limit")):
            with self.server.lock:
                store.answer = answer
            try:
                done = guest.execute([guest.LULL, "fleet", "--collector", self.listen],
                                     self.host.environment)
            finally:
                with self.server.lock:
                    store.answer = None
            self.assertEqual((done.status, done.stdout), (1, ""))
            self.assertIn(f"the ClickHouse at {self.server.url}, ", done.stderr)
            self.assertIn(why, done.stderr)
        # Who does not wait any more takes no place from others.
        with self.server.lock:
            store.is_silent = True
        command = [guest.LULL, "fleet", "--collector", self.listen]
        asking = [subprocess.Popen(command, env=self.host.environment, stderr=subprocess.PIPE,
                                   text=True) for _ in range(6)]
        try:
            guest.wait_until(lambda: sum(one.poll() == 1 for one in asking) == 2)
        finally:
            for one in asking:
                one.kill()
            said = [one.communicate()[1] for one in asking]
            with self.server.lock:
                store.answer, store.is_silent = b"\x05", False
        self.assertEqual(sum("4 answers about all jobs are under way" in one for one in said), 2,
                         said)
        try:
            guest.wait_until(lambda: "ends within a row" in guest.execute(
                command, self.host.environment).stderr, 5)
        finally:
            with self.server.lock:
                store.answer = None

    def test_it_ends_though_the_server_says_nothing(self):
        store = self.server.store
        self.whole(store, "one")
        with self.another("--clickhouse", self.server.url) as (other, said):
            guest.wait_until(lambda: "keeps totals of jobs at " in said())
            with self.server.lock:
                store.is_silent = True
            asking = subprocess.Popen(
                [guest.LULL, "fleet", "--collector", other.listen],
                env=self.host.environment, stderr=subprocess.PIPE, text=True)
            try:
                time.sleep(1)
                other.send_signal(signal.SIGTERM)
                began = time.monotonic()
                self.assertEqual(other.wait(60), 0, said())
                self.assertLess(time.monotonic() - began, 30)
                self.assertIn("collector", asking.communicate(timeout=30)[1])
                self.assertEqual(asking.returncode, 1)
            finally:
                with self.server.lock:
                    store.is_silent = False

    def test_who_has_it_by_tls_is_asked_for_a_certificate_and_gets_name_and_password(self):
        with tempfile.TemporaryDirectory(prefix="lull-tls-") as folder:
            for name in ("server", "stranger"):
                subprocess.run(
                    ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
                     "-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1",
                     "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem"],
                    check=True, stderr=subprocess.DEVNULL)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")
            server = Server(context)
            login = {"CLICKHOUSE_USER": "writer", "CLICKHOUSE_PASSWORD": "a word"}
            try:
                with self.another("--clickhouse", server.url, environment={
                        **login, "LULL_CLICKHOUSE_CERTIFICATE": f"{folder}/stranger.pem"}) as (
                            _, said):
                    guest.wait_until(lambda: "certificate verify failed" in said())
                    self.assertEqual(server.store.headers, {})
                with self.another("--clickhouse", server.url, environment={
                        **login, "LULL_CLICKHOUSE_CERTIFICATE": f"{folder}/server.pem"}) as (
                            other, said):
                    guest.wait_until(lambda: "lull_jobs" in server.store.views)
                    self.assertEqual(server.store.headers["X-ClickHouse-User"], "writer")
                    self.assertEqual(server.store.headers["X-ClickHouse-Key"], "a word")
                    self.assertNotIn("a word", said())
                # The certificate is of 127.0.0.1 alone.
                named = server.url.replace("127.0.0.1", "localhost")
                with self.another("--clickhouse", named, environment={
                        **login, "LULL_CLICKHOUSE_CERTIFICATE": f"{folder}/server.pem"}) as (
                            _, said):
                    guest.wait_until(lambda: "certificate verify failed" in said())
            finally:
                server.close()

    def test_wrong_options_are_told_before_anything_begins(self):
        for options, environment, expected in (
                (["http://192.0.2.1"], {}, "--insecure-plain-tcp"),
                (["http://me:sesame@host"], {}, "CLICKHOUSE_PASSWORD"),
                (["clickhouse://host"], {}, "is no URL of http"),
                (["http://127.0.0.1/path"], {}, "has a path"),
                (["http://127.0.0.1?database=a;b"], {}, "?database=NAME"),
                (["http://127.0.0.1?user=me&password=sesame"], {}, "CLICKHOUSE_PASSWORD"),
                ([""], {}, "is no URL of http"),
                (["http://127.0.0.1:99999"], {}, "has no HOST:PORT"),
                (["http://127.0.0.1"], {"CLICKHOUSE_PASSWORD": "a\r\nb"}, "control character"),
                (["https://127.0.0.1"], {"LULL_CLICKHOUSE_CERTIFICATE": "/dev/null"},
                 "no PEM file"),
                (["http://127.0.0.1", "--clickhouse-every", "0"], {}, "--clickhouse-every")):
            with self.subTest(options=options):
                with self.another("--clickhouse", *options, environment=environment) as (
                        other, said):
                    self.assertIn(other.wait(30), (1, 2))
                    self.assertIn(expected, said())
                    self.assertNotIn("sesame", said())


if __name__ == "__main__":
    unittest.main()
