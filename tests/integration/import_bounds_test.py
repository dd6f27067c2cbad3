#!/usr/bin/env python3
"""`lull import` and files that were made to take all memory, all time or somebody's
files, or that happen to."""

import gzip
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import guest
import import_test
from import_test import STORY, TRACES, call, frame, kernel, nsys_export, trace

MOST_MEMORY = 512 << 20


class Bounds(import_test.Import):
    def start(self, path):
        return subprocess.Popen([guest.LULL, "import", "--quiet", path], text=True,
                                env=self.host.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def import_within(self, path, seconds=60, status=0):
        """What it said, and the most memory that it took."""
        begun = time.monotonic()
        process = self.start(path)
        out, err = process.stdout.read(), process.stderr.read()
        _, code, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.returncode, status, err)
        self.assertLess(time.monotonic() - begun, seconds)
        self.assertLess(usage.ru_maxrss << 10, MOST_MEMORY)
        return out, err

    def spools(self):
        found = []
        for folder, _, names in os.walk(self.host.environment["XDG_DATA_HOME"]):
            found += [folder for name in names if name == "importing"]
        return found

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_a_number_of_a_device_that_cannot_be_is_no_device(self):
        events = STORY + [kernel("strange", 2000, 2100, 0, device=-3)]
        events.append({"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5,
                       "args": {"Addr": 1, "Bytes": 512, "Device Type": 1, "Device Id": -3}})
        answer = self.ask("gaps", self.job_of(self.write("minus.json", trace(events))))
        self.assertEqual([row["device"] for row in answer["devices"]], [0])
        self.assertAlmostEqual(answer["gpu"]["busy_ms"], 0.3)
        self.assertEqual(
            answer["job"]["imported"]["ignored"]["of a device with an absurd number"], 2)

    def test_a_name_that_is_not_taken_is_told(self):
        path = self.write("named.json", trace(STORY, traceName="a"))
        self.lull("import", "--quiet", "--name", "first", path)
        again = self.lull("import", "--quiet", "--name", "second", path)
        self.assertIn("not called second", again.stderr)
        self.assertEqual(self.lull("import", "--quiet", "--name", "first", path).stderr, "")
        self.lull("gaps", "second", status=1)

    def test_what_a_killed_import_leaves_is_removed(self):
        events = [kernel("k", 10 * i, 10 * i + 5, 0) for i in range(300_000)]
        path = self.write("killed.json", trace(events))
        other = self.write("other.json", trace(STORY, traceName="b"))
        process = self.start(path)
        while process.poll() is None and not self.spools():
            time.sleep(0.001)
        self.assertIsNone(process.poll(), "it was done before it could be killed")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertEqual(len(self.spools()), 1)
        self.job_of(other)
        self.assertEqual(self.spools(), [])

    def test_many_long_names_are_refused_before_they_take_the_memory(self):
        path = self.path("names.json.gz")
        with gzip.open(path, "wt", compresslevel=1) as file:
            file.write('{"traceEvents":[')
            for i in range(150_000):
                event = kernel(f"{i:06}" + "k" * 4000, 10 * i, 10 * i + 5, i + 1)
                file.write((", " if i else "") + json.dumps(event))
            file.write("]}")
        _, error = self.import_within(path, status=1)
        self.assertIn("more than an import takes", error)

    def test_many_stacks_are_refused_before_they_take_the_memory(self):
        path = self.path("stacks.json.gz")
        with gzip.open(path, "wt", compresslevel=1) as file:
            file.write('{"traceEvents":[' + json.dumps(kernel("k", 0, 5, 1)))
            for i in range(1_600_000):
                file.write(',{"ph":"X","cat":"python_function","name":"a.py(%d): f","pid":1,'
                           '"tid":1,"ts":%d,"dur":5}' % (i, 10 * i))
            file.write("]}")
        _, error = self.import_within(path, status=1)
        self.assertIn("different stacks", error)

    def test_a_hundred_thousand_threads(self):
        events = []
        for i in range(100_000):
            at = 200 * i  # 20 s
            events.append(frame("t.py(1): work", at, at + 150, tid=10_000 + i))
            events.append(call("cudaLaunchKernel", at, at + 5, i + 1, tid=10_000 + i))
            events.append(kernel("k", at + 10, at + 100, i + 1))
        self.import_within(self.write("threads.json", trace(events)))

    def test_threads_that_last(self):
        """All of them are there from the beginning to the end."""
        events = [kernel("k", i * 1e5, i * 1e5 + 50, i + 1) for i in range(200)]
        for i in range(20_000):
            events.append(frame("t.py(1): work", i, 2e7 + i, tid=10_000 + i))
            events.append(call("cudaLaunchKernel", i + 1, i + 2, i + 1, tid=10_000 + i))
        self.import_within(self.write("lasting.json", trace(events)))

    def test_views_are_no_tables(self):
        path = nsys_export(self.path("view.sqlite"))
        with sqlite3.connect(path) as database:
            database.executescript("""
                DROP TABLE NVTX_EVENTS;
                CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(x) AS
                  (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 0 OR x > 0)
                  SELECT x AS start, x AS end, 34 AS eventType, 0 AS globalTid, '' AS text,
                         0 AS textId FROM n WHERE x < 0;""")
        database.close()
        self.import_within(path, seconds=20)

    def test_strings_that_do_not_lie_by_their_numbers(self):
        path = nsys_export(self.path("strings.sqlite"))
        many = 60_000
        with sqlite3.connect(path) as database:
            database.executescript("""
                CREATE TABLE Copy (id INT, value TEXT);
                INSERT INTO Copy SELECT * FROM StringIds;
                DROP TABLE StringIds;
                ALTER TABLE Copy RENAME TO StringIds;""")
            database.executemany("INSERT INTO StringIds VALUES (?, ?)",
                                 ((i, f"range {i}") for i in range(100, 100 + many)))
            database.executemany(
                "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, NULL, ?)",
                ((i, i + 1, 111 << 24 | 111, i) for i in range(100, 100 + many)))
        database.close()
        # Each of them by a look at all takes a minute and more.
        out, _ = self.import_within(path, seconds=30)
        names = {row["name"] for row in self.ask("regions", out.strip())["regions"]}
        self.assertIn(f"range {99 + many}", names)

    def test_nothing_is_left_beside_a_database(self):
        folder = self.path("wal")
        os.makedirs(folder)
        path = nsys_export(os.path.join(folder, "a b?#%.sqlite"))
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA journal_mode = WAL")
        database.close()
        self.assertEqual(os.listdir(folder), ["a b?#%.sqlite"])
        self.import_within(path)
        self.assertEqual(os.listdir(folder), ["a b?#%.sqlite"])

    def test_a_database_that_is_being_written_is_refused(self):
        path = nsys_export(self.path("open.sqlite"))
        database = sqlite3.connect(path)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("DELETE FROM NVTX_EVENTS")
        database.commit()
        _, error = self.import_within(path, status=1)
        self.assertIn("-wal", error)
        database.close()
        self.import_within(path)

    def test_absurd_numbers_of_processes(self):
        path = nsys_export(self.path("processes.sqlite"))
        with sqlite3.connect(path) as database:
            database.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 1)",
                ((i, i + 1, i << 24, i) for i in range(1, 1_000_000)))
        database.close()
        self.import_within(path, seconds=60)

    @import_test.real("nsys/a100_cloverleaf.sqlite", "hta/mi250_minitoy.json.gz",
                      "hta/a100_event_sync.json.gz", "tracelens/h100_nsfw.json.gz")
    def test_real_files_with_bytes_changed(self):
        """Any of them is a job, or a message; none ends lull itself."""
        chance = random.Random(17)
        for name, rounds in (("nsys/a100_cloverleaf.sqlite", 40),
                             ("hta/mi250_minitoy.json.gz", 60),
                             ("hta/a100_event_sync.json.gz", 60),
                             ("tracelens/h100_nsfw.json.gz", 20)):
            with open(os.path.join(TRACES, name), "rb") as file:
                whole = file.read()
            packed = name.endswith(".gz")
            if packed:
                whole = gzip.decompress(whole)
            for _ in range(rounds):
                wrong = bytearray(whole)
                for _ in range(chance.choice((1, 5, 50))):
                    at = chance.randrange(len(wrong))
                    if chance.random() < 0.3:
                        size = chance.randrange(1, 200)
                        wrong[at:at + size] = wrong[:size] if chance.random() < 0.5 else b""
                    else:
                        wrong[at] = chance.choice((0, 0xff, 0x22, 0x2d, 0x39, wrong[at] ^ 4))
                with self.subTest(name):
                    path = self.write("wrong.json" if packed else "wrong.sqlite", bytes(wrong))
                    process = self.start(path)
                    _, error = process.communicate(timeout=60)
                    self.assertIn(process.returncode, (0, 1), error)
                    if process.returncode == 1:
                        self.assertTrue(error.startswith("lull import: "), error)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["-v"]))
