#!/usr/bin/env python3
"""`lulld --clickhouse` with a real server: numbers are those of the verbs to the nanosecond,
whatever is killed, and each job is there once. LULL_CLICKHOUSE=chdb: with a current one."""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from fleet_case import HOSTILE, TABLES, FleetCase, guest
from server import ClickHouse, free_ports

PUPPETS = os.path.join(os.path.dirname(HERE), "puppets")
LATE_SEED = 2  # of a program of nccl_random.py in which a rank sleeps
KILLS = int(os.environ.get("LULL_KILLS", "20"))


class Fleet(FleetCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert cls.start_ranks(HOSTILE).wait(120) == 0

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def test_numbers_are_those_of_the_verbs(self):
        row = self.ended(HOSTILE)
        self.assertEqual(self.ask("gaps", row["job"])["job"]["name"], HOSTILE)
        checked = self.check_numbers(row["job"])
        self.assertGreater(checked["idle_ns"], 0)
        self.assertGreater(checked["sync_blocked_ns"], 0)
        self.assertEqual((checked["exit_status"], checked["ranks"], checked["live"]), (0, 2, 0))
        self.assertEqual(checked["events_lost"], 0)
        self.assertEqual(checked["run"], row["job"])

    def test_a_job_that_goes_on_is_written_again_and_again_in_two_places(self):
        job = self.start_ranks("goes on", 15_000)
        idle = set()

        def grows():
            self.check_whole()
            for row in self.server.rows("SELECT * FROM lull_jobs WHERE live = 1"):
                idle.add(row["idle_ns"])
            return len(idle) > 3
        guest.wait_until(grows, 90)
        self.assertEqual(job.wait(300), 0)
        row = self.ended("goes on")
        self.check_numbers(row["job"])
        of_it = f"FROM lull_lines_data WHERE job = '{row['job']}'"
        self.assertEqual(self.server.rows(f"SELECT uniqExact(slot) AS n {of_it}")[0]["n"], 2)

    def fleet(self, *arguments):
        answer = self.ask("fleet", *arguments)
        return {key: answer[key] for key in answer if key not in ("store", "url", "since", "until")}

    def test_lull_fleet_says_the_same_of_the_server_and_of_the_own_store(self):
        """To the nanosecond, whatever is asked."""
        first = self.ended(HOSTILE)["job"]
        names = ["fleet 1", "fleet 2", "late"]
        self.assertEqual(self.start_ranks(names[0], 40).wait(120), 0)
        self.assertEqual(self.start_ranks(names[1], 60).wait(120), 0)
        self.assertEqual(self.start_job(
            "late", sys.executable, os.path.join(PUPPETS, "nccl_random.py"), "--store",
            os.path.join(self.folder, "late"), "--seed", str(LATE_SEED), "--ranks",
            "4").wait(120), 0)
        ids = [self.ended(name)["job"] for name in names]
        for job, *tags in ((first, "a/b"), (ids[0], "a/b", "x:1"), (ids[1], "x:1")):
            done = guest.execute([guest.LULL, "tag", job, *tags, "--collector", self.listen],
                                 self.host.environment)
            self.assertEqual(done.status, 0, done.stderr)
        guest.wait_until(lambda: len(self.server.rows(
            "SELECT job FROM lull_jobs WHERE has(tags, 'x:1')")) == 2)
        host = self.ask("jobs", "--top", "1")["jobs"][0]["host"]
        questions = [
            [], ["--top", "2"], ["--top", "1"], ["--top", "0"], ["--name", HOSTILE],
            ["--name", "' OR 1 --"], ["--tag", "a/b"],
            ["--tag", "a/b", "--tag", "x:1"], ["--tag", "\\' OR 1 --"],
            ["--host", host, "--top", "3"], ["--host", "nowhere"], ["--user", "nobody else"],
            ["--since", "1h"], ["--since", "2h", "--until", "1h"],
            ["--by", "host"], ["--by", "name", "--top", "2"], ["--since", "all"],
            ["--by", "tag"], ["--by", "day"], ["--by", "week", "--top", "1"]]
        self.assertEqual(self.ask("fleet")["store"], "clickhouse")
        told = [self.fleet(*question) for question in questions]
        self.assertGreaterEqual(told[0]["totals"]["jobs"], 4)
        self.assertTrue(told[0]["late"], "nobody was late")
        self.assertGreater(told[1]["lines_left_out"], 0)
        self.assertEqual([one["totals"]["jobs"] for one in told[4:8]], [1, 0, 2, 1])
        self.assertEqual([one["totals"]["jobs"] for one in told[8:12]],
                         [0, told[0]["totals"]["jobs"], 0, 0])
        tags = {row["key"]: row["jobs"] for row in told[17]["groups"]}
        self.assertEqual((tags["a/b"], tags["x:1"], len(tags)), (2, 2, 3))
        self.assertEqual(told[18]["groups"][0]["key"][:2], "20")
        self.end_collector()
        options, type(self).options = self.options, []
        try:
            self.start_collector()
            self.assertEqual(self.ask("fleet")["store"], "collector")
            for question, answer in zip(questions, told):
                self.assertEqual(self.fleet(*question), answer, question)
        finally:
            self.end_collector()
            type(self).options = options
            self.start_collector()
        self.server.stop()
        try:
            done = guest.execute([guest.LULL, "fleet", "--collector", self.listen],
                                 self.host.environment)
            self.assertEqual((done.status, done.stdout), (1, ""))
            self.assertRegex(done.stderr, f"ClickHouse at {self.server.url}, .* does not answer")
        finally:
            self.server.start()

    def test_marks_of_a_job_that_is_over_arrive(self):
        job = self.ended(HOSTILE)["job"]
        done = guest.execute([guest.LULL, "tag", job, "blue", "--collector", self.listen],
                             self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        guest.wait_until(lambda: self.server.rows(
            f"SELECT job FROM lull_jobs WHERE job = '{job}' AND has(tags, 'blue')"))
        self.check_numbers(job)

    def test_what_it_missed_arrives_when_the_server_is_back(self):
        self.ended(HOSTILE)
        before = len(self.said())

        def since():
            return self.said()[before:]
        self.server.stop()
        try:
            self.assertEqual(self.start_ranks("meanwhile", 50).wait(120), 0)
            guest.wait_until(lambda: "do not arrive" in since())
            time.sleep(3)  # rounds that fail alike
            self.assertEqual(since().count("do not arrive"), 1, since())
        finally:
            self.server.start()
        self.check_numbers(self.ended("meanwhile")["job"])
        guest.wait_until(lambda: "arrive at " + self.server.url + " again" in since())

    def test_kills_leave_nothing_out_and_nothing_twice(self):
        draw = random.Random(int(os.environ.get("LULL_SEED", "1")))
        names = []
        deadline = time.monotonic() + 300
        for number in range(KILLS):
            if time.monotonic() > deadline:
                print(f"stopped after {number} kills")
                break
            names.append(f"kill {number}")
            job = self.start_ranks(names[-1], 60)
            time.sleep(draw.uniform(0, 2.5))
            if draw.random() < 0.5:
                self.server.kill()
                time.sleep(draw.uniform(0, 0.5))
                self.server.start()
            else:
                self.lulld.kill()
                self.lulld.wait()
                self.errors.close()
                type(self).start_collector()
            self.assertEqual(job.wait(120), 0)
        for name in names:
            self.check_numbers(self.ended(name)["job"])
        self.assertGreaterEqual(self.check_whole(), len(names))

    def test_a_table_that_is_not_ours_is_left_alone(self):
        self.server.query("CREATE DATABASE other")
        self.server.query("CREATE TABLE other.lull_jobs_data (a UInt8) ENGINE = Memory")
        said = self.said_of("--clickhouse", self.server.url + "/?database=other")
        self.assertIn("its table other.lull_jobs_data has other columns", said)
        self.assertEqual(self.server.query("SELECT count() FROM other.lull_jobs_data").strip(),
                         b"0")
        said = self.said_of("--clickhouse", self.server.url + "/?database=nowhere")
        self.assertIn("nowhere", said)

    def said_of(self, *options):
        """What another collector says until it has tried once."""
        with tempfile.TemporaryDirectory(prefix="lull-other-") as folder:
            with open(os.path.join(folder, "errors"), "w+", encoding="utf-8") as errors:
                other = subprocess.Popen(
                    [guest.LULLD, "--listen", f"unix:{folder}/run/c.sock", "--database",
                     f"{folder}/lull.db", *options], env=self.host.environment, stderr=errors)
                try:
                    def tried():
                        errors.seek(0)
                        return [line for line in errors if "do not arrive" in line]
                    return guest.wait_until(tried)[0]
                finally:
                    other.terminate()
                    began = time.monotonic()
                    self.assertEqual(other.wait(30), 0)
                    self.assertLess(time.monotonic() - began, 15)

    def test_a_fleet_of_a_thousand_jobs_of_512_ranks(self):
        self.ended(HOSTILE)
        self.server.query("CREATE DATABASE fleet")
        for table in TABLES:
            of = self.server.rows("SELECT name, engine FROM system.tables WHERE database = "
                                  f"'default' AND name = '{table}_data'")
            self.assertEqual(of[0]["engine"], "ReplacingMergeTree")
        # The tables and views of this release, in a database of their own.
        done = self.said_of_start(self.server.url + "/?database=fleet")
        self.assertIn("database fleet", done)
        key = "toDate('2026-01-01') + j % 28, concat('job', toString(j)), 0, 1"
        jobs = "(SELECT number AS j FROM system.numbers LIMIT 1000)"
        ranks = ("(SELECT intDiv(number, 512) AS j, number % 512 AS r FROM system.numbers "
                 "LIMIT 512000)")

        def fill(table, columns, values, source):
            self.server.query(f"INSERT INTO fleet.{table}_data (day, job, slot, version, "
                              f"{columns}) SELECT {key}, {values} FROM {source}")
        fill("lull_ranks", "rank, traced_ns, busy_ns, idle_ns",
             "r, 1000000000, 1000000000 - 1000000 * (j % 100), 1000000 * (j % 100)", ranks)
        for cause, part in (("gc", 2), ("sync", 3)):
            fill("lull_causes", "cause, count, total_ns, max_ns",
                 f"'{cause}', 512, intDiv(512000000 * (j % 100) * {part}, 5), 1", jobs)
        fill("lull_lines", "cause, file, line, count, total_ns, max_ns",
             "'gc', concat('/srv/', toString(n % 40), '.py'), n, 1, 2560000 * (j % 100), j",
             "(SELECT intDiv(number, 200) AS j, number % 200 AS n FROM system.numbers "
             "LIMIT 200000)")
        fill("lull_jobs",
             "name, host, ranks, start_unix_ns, duration_ns, gpu_ns, traced_ns, idle_ns",
             "concat('model ', toString(j % 7)), concat('host', toString(j % 300)), 512, "
             "(20454 + j % 28) * 86400000000000, 10000000000, 5120000000000, 512000000000, "
             "512000000 * (j % 100)", jobs)
        idle = sum(512_000_000 * (job % 100) for job in range(1000))
        for title, sql, expected in (
                ("idle time by cause", "SELECT cause, sum(total_ns) AS n FROM fleet.lull_causes "
                 "GROUP BY cause ORDER BY cause", [idle * 2 // 5, idle * 3 // 5]),
                ("the worst of all jobs", "SELECT job, idle_ns AS n FROM fleet.lull_jobs "
                 "ORDER BY idle_ns / traced_ns DESC, job LIMIT 1", [512_000_000 * 99]),
                ("idle time of all ranks", "SELECT sum(idle_ns) AS n FROM fleet.lull_ranks",
                 [idle]),
                ("the ranks of one job", "SELECT count() AS n FROM fleet.lull_ranks "
                 "WHERE job = 'job77'", [512])):
            began = time.monotonic()
            rows = self.server.rows(sql)
            print(f"{title}: {time.monotonic() - began:.3f} s")
            self.assertEqual([row["n"] for row in rows], expected, title)
        with self.collector_of(self.server.url + "/?database=fleet") as listen:
            command = [guest.LULL, "fleet", "--since", "all", "--json", "--collector", listen]
            began = time.monotonic()
            done = guest.execute(command, self.host.environment)
            print(f"lull fleet: {time.monotonic() - began:.3f} s")
            self.assertEqual(done.status, 0, done.stderr)
            told = json.loads(done.stdout)
            self.assertEqual((told["totals"]["jobs"], told["totals"]["hosts"]), (1000, 300))
            self.assertEqual(round(told["totals"]["idle_ms"] * 1e6), idle)
            self.assertEqual([(row["cause"], round(row["total_ms"] * 1e6), row["jobs"])
                              for row in told["causes"]],
                             [("sync", idle * 3 // 5, 990), ("gc", idle * 2 // 5, 990)])
            self.assertEqual((len(told["lines"]), told["lines_left_out"]), (10, 190))
            self.assertEqual({(row["jobs"], round(row["total_ms"] * 1e6)) for row in told["lines"]},
                             {(990, idle // 200)})
            self.assertEqual(told["jobs_left_out"], 990)
            self.assertEqual(round(told["totals"]["estimated_ms"] * 1e6), 10 * idle)
            self.assertEqual(told["jobs"][0]["estimated_ms"], 10 * 512 * 99)
            self.server.query("INSERT INTO fleet.lull_jobs_data (day, job, version, "
                              "start_unix_ns, traced_ns) SELECT toDate(20460), "
                              "concat('vast', toString(number)), 1, 20460 * 86400000000000, "
                              "9000000000000000000 FROM system.numbers LIMIT 3")
            done = guest.execute(command, self.host.environment)
            self.assertEqual(done.status, 1)
            self.assertIn("more than 500 years of GPU time", done.stderr)

    @contextlib.contextmanager
    def collector_of(self, url):
        """Another collector beside the first one, without jobs of its own: its address."""
        with tempfile.TemporaryDirectory(prefix="lull-other-") as folder:
            listen = f"unix:{folder}/run/c.sock"
            other = subprocess.Popen(
                [guest.LULLD, "--listen", listen, "--database", f"{folder}/lull.db",
                 "--clickhouse", url], env=self.host.environment, stderr=subprocess.DEVNULL)
            try:
                guest.wait_until(lambda: os.path.exists(listen[len("unix:"):]))
                yield listen
            finally:
                other.terminate()
                self.assertEqual(other.wait(30), 0)

    def said_of_start(self, url):
        """Another collector makes tables there."""
        with tempfile.TemporaryDirectory(prefix="lull-other-") as folder:
            with open(os.path.join(folder, "errors"), "w+", encoding="utf-8") as errors:
                other = subprocess.Popen(
                    [guest.LULLD, "--listen", f"unix:{folder}/run/c.sock", "--database",
                     f"{folder}/lull.db", "--clickhouse", url], env=self.host.environment,
                    stderr=errors)
                guest.wait_until(lambda: self.server.rows(
                    "SELECT count() AS n FROM system.tables WHERE database = 'fleet'")[0]["n"]
                    == 2 * len(TABLES))
                other.terminate()
                self.assertEqual(other.wait(30), 0)
                errors.seek(0)
                return errors.read()


class TwoCollectors(FleetCase):
    """Of one fleet, each with jobs of its own."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert cls.start_ranks(HOSTILE).wait(120) == 0

    def test_any_collector_leads_to_the_one_that_has_a_job(self):
        """`lull report JOB`, and export, say the same whichever of them is asked."""
        here = self.ended(HOSTILE)["job"]
        (port,) = free_ports(1)
        there = f"127.0.0.1:{port}"

        def lull(*arguments, of=self.listen):
            return guest.execute([guest.LULL, *arguments, "--collector", of, "--token-file",
                                  tokens], self.host.environment)

        with tempfile.TemporaryDirectory(prefix="lull-other-") as folder:
            database = os.path.join(folder, "lull.db")
            tokens = database + ".tokens"

            @contextlib.contextmanager
            def collector(*options):
                other = subprocess.Popen(
                    [guest.LULLD, "--listen", there, "--database", database, *self.options,
                     *options], env=self.host.environment, stderr=subprocess.DEVNULL)
                try:
                    guest.wait_until(lambda: os.path.exists(tokens) and
                                     lull("jobs", of=there).status == 0)
                    yield
                finally:
                    other.terminate()
                    self.assertEqual(other.wait(30), 0)

            with collector():
                mine, type(self).listen = self.listen, there
                self.host.environment["LULL_TOKEN_FILE"] = tokens
                try:
                    self.assertEqual(self.start_ranks("on another host", 50).wait(120), 0)
                finally:
                    type(self).listen = mine
                    del self.host.environment["LULL_TOKEN_FILE"]
                job = self.ended("on another host")["job"]
                told = lull("report", job)
                self.assertEqual(told.status, 1)
                self.assertIn("that does not say how to reach it (lulld --advertise)", told.stderr)
            with collector("--advertise", there):
                guest.wait_until(lambda: self.server.rows(
                    f"SELECT job FROM lull_jobs WHERE collector = '{there}'"))
                for verb in (("report", "--json"), ("gaps",), ("steps", "--json"),
                             ("export", "-o", "-")):
                    first = lull(verb[0], job, *verb[1:], of=there)
                    self.assertEqual(first.status, 0, first.stderr)
                    for name in (job, job[:8], "on another host"):
                        told = lull(verb[0], name, *verb[1:])
                        self.assertEqual((told.status, told.stderr), (0, ""))
                        self.assertEqual(told.stdout, first.stdout, (verb, name))
                told = lull("pin", job)
                self.assertEqual(told.status, 1)
                self.assertIn(f"the collector at {there} has job {job[:8]}", told.stderr)
                # And the other way round, where a name is one that SQL has to be spared.
                told = lull("report", HOSTILE, of=there)
                self.assertEqual(told.status, 1)
                self.assertIn(f"job {here[:8]} is, or was, with a collector on", told.stderr)
                for nobodys in ("0000", "x' OR 1 --", "\\", "nobody's"):
                    told = lull("report", nobodys)
                    self.assertEqual(told.status, 1)
                    self.assertIn(f'no job "{nobodys}"', told.stderr)
                told = lull("report", job, "--rank", "77")
                self.assertEqual(told.status, 1)
                self.assertIn("no process of this job has that rank", told.stderr)
            told = lull("report", job)
            self.assertEqual((told.status, told.stdout), (1, ""))
            self.assertIn(f"cannot reach the collector at {there}", told.stderr)
            os.remove(database)
            with collector("--advertise", there):
                for asked in (self.listen, there):
                    told = lull("report", job, of=asked)
                    self.assertEqual((told.status, told.stdout), (1, ""))
                    self.assertIn(f"job {job[:8]} was with the collector at {there}, which is "
                                  "this one: it has been deleted", told.stderr)
            self.server.stop()
            try:
                told = lull("report", "0000")
                self.assertEqual(told.status, 1)
                self.assertIn("whether another collector has it, the ClickHouse", told.stderr)
            finally:
                self.server.start()


class TwoServers(FleetCase):
    """Each has the jobs of a collector of its own; tables over both have all of them."""

    @classmethod
    def setUpClass(cls):
        if cls.kind is not ClickHouse:
            raise unittest.SkipTest("chdb is no cluster")
        super().setUpClass()

    def test_tables_over_both_servers_have_the_jobs_of_both(self):
        self.assertEqual(self.start_ranks("first", 50).wait(120), 0)
        first = self.ended("first")
        with tempfile.TemporaryDirectory(prefix="lull-clickhouse-") as folder:
            ports = free_ports(2)
            shards = [self.tcp_of(self.server), ports[1]]
            second = ClickHouse(folder, ports, shards)
            second.start()
            try:
                self.lulld.terminate()
                self.assertEqual(self.lulld.wait(30), 0)
                self.errors.close()
                options, type(self).options = self.options, ["--clickhouse", second.url,
                                                              "--clickhouse-every", "1"]
                database, type(self).database = self.database, self.folder + "/second.db"
                type(self).start_collector()
                self.assertEqual(self.start_ranks("second", 50).wait(120), 0)
                guest.wait_until(lambda: second.rows("SELECT job FROM lull_jobs WHERE ended = 1"))
                for table in TABLES:
                    second.query(f"CREATE TABLE all_{table} AS {table} "
                                 f"ENGINE = Distributed(two, default, {table})")
                rows = second.rows("SELECT job, name, idle_ns FROM all_lull_jobs ORDER BY name")
                self.assertEqual([row["name"] for row in rows], ["first", "second"])
                self.assertEqual(rows[0]["job"], first["job"])
                sums = second.rows("SELECT job, sum(total_ns) AS idle FROM all_lull_lines "
                                   "GROUP BY job")
                self.assertEqual({row["job"]: row["idle"] for row in sums},
                                 {row["job"]: row["idle_ns"] for row in rows})
                type(self).options, type(self).database = options, database
            finally:
                second.stop()

    @staticmethod
    def tcp_of(server):
        with open(os.path.join(server.folder, "config.xml"), encoding="utf-8") as file:
            return file.read().split("<tcp_port>")[1].split("<")[0]


if __name__ == "__main__":
    unittest.main()
