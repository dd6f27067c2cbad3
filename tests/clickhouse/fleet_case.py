"""A collector that keeps its totals in a ClickHouse, and jobs of two ranks on the simulated
device: what the verbs print with --json, and what SQL says."""

import collections
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "integration")]
import guest
from metrics_case import HOSTILE, WORLD, MetricsCase
from server import Chdb, ClickHouse

TABLES = ("lull_ranks", "lull_causes", "lull_rank_causes", "lull_lines", "lull_syncs",
          "lull_late", "lull_jobs")


def ns(milliseconds):
    return round(milliseconds * 1e6)


def site_of(site):
    site = site or {}
    return site.get("file") or "", site.get("line") or 0, site.get("function") or ""


class FleetCase(MetricsCase):
    kind = {"chdb": Chdb}.get(os.environ.get("LULL_CLICKHOUSE"), ClickHouse)

    @classmethod
    def setUpClass(cls):
        if not cls.kind.is_there():
            raise unittest.SkipTest("no ClickHouse: tests/clickhouse/install")
        cls.store_folder = guest.tempfile.TemporaryDirectory(prefix="lull-clickhouse-")
        cls.server = cls.kind(cls.store_folder.name)
        cls.server.start()
        os.environ.update(cls.server.environment)
        cls.options = ["--clickhouse", cls.server.url, "--clickhouse-every", "1",
                       "--log-level", "info"]
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.server.stop()
        cls.store_folder.cleanup()

    @classmethod
    def ended(cls, name, seconds=60):
        """The row of the one job of this name, once its end is there."""
        def there():
            rows = [row for row in cls.server.rows("SELECT * FROM lull_jobs WHERE ended = 1")
                    if row["name"] == name]
            return rows or None
        (row,) = guest.wait_until(there, seconds)
        return row

    def sum_up(self, table, job, keys, values, where=""):
        """{keys: values} of the rows of a job."""
        rows = self.server.rows(f"SELECT * FROM {table} WHERE job = '{job}'{where}")
        found = {tuple(row[key] for key in keys): tuple(row[value] for value in values)
                 for row in rows}
        self.assertEqual(len(found), len(rows), "a key comes twice")
        return found

    def check_numbers(self, job):
        """All that SQL says of a job against the verbs, to the nanosecond."""
        def ask(verb, *arguments):
            return self.ask(verb, job, "--phase", "all", *arguments)

        (row,) = self.server.rows(f"SELECT * FROM lull_jobs WHERE job = '{job}'")
        gaps = ask("gaps", "--top", "0")
        for name in ("traced", "busy", "kernel", "idle"):
            self.assertEqual(row[f"{name}_ns"], ns(gaps["gpu"][f"{name}_ms"]), name)
        causes = {(one["cause"],): (one["count"], ns(one["total_ms"]), ns(one["max_ms"]))
                  for one in gaps["causes"]}
        self.assertEqual(
            self.sum_up("lull_causes", job, ["cause"], ["count", "total_ns", "max_ns"]), causes)
        self.assertEqual(sum(total for _, total, _ in causes.values()), row["idle_ns"])
        lines = collections.defaultdict(lambda: (0, 0, 0))
        for one in gaps["gaps"]:
            key = (one["cause"], *site_of(one["culprit"]), one["api"] or "")
            count, total, most = lines[key]
            lines[key] = (count + one["count"], total + ns(one["total_ms"]),
                          max(most, ns(one["max_ms"])))
        self.assertEqual(
            self.sum_up("lull_lines", job, ["cause", "file", "line", "function", "api"],
                        ["count", "total_ns", "max_ns"]), dict(lines))
        syncs = collections.defaultdict(lambda: (0, 0))
        wasted = collections.Counter()
        for one in ask("syncs", "--top", "0")["sync_points"]:
            key = (one["api"], *site_of(one["site"]))
            calls, blocked = syncs[key]
            syncs[key] = calls + one["calls"], blocked + ns(one["blocked_ms"])
            wasted[key] += ns(one["wasted_ms"] or 0)
        told = self.sum_up("lull_syncs", job, ["api", "file", "line", "function"],
                           ["calls", "blocked_ns", "wasted_ns"])
        self.assertEqual({key: values[:2] for key, values in told.items()}, dict(syncs))
        for key, (_, _, told_ns) in told.items():
            # The verbs say "not known" where no call lies in traced time, also if idle time
            # behind one does.
            self.assertIn(wasted[key], (told_ns, 0), key)
        self.assertEqual(sum(values[2] for values in told.values()),
                         causes.get(("sync",), (0, 0))[1])
        ranks = self.sum_up("lull_ranks", job, ["rank"], ["traced_ns", "busy_ns", "idle_ns",
                                                          "sync_blocked_ns", "gc_ns"])
        self.assertEqual(sorted(ranks), [(rank,) for rank in range(WORLD)])
        for rank in range(WORLD):
            with self.subTest(rank=rank):
                told = ask("gaps", "--rank", str(rank))
                self.assertEqual(ranks[rank,], (
                    *(ns(told["gpu"][f"{name}_ms"]) for name in ("traced", "busy", "idle")),
                    ns(ask("syncs", "--rank", str(rank))["total_blocked_ms"]),
                    ns(ask("gc", "--rank", str(rank))["total_ms"])))
                self.assertEqual(
                    self.sum_up("lull_rank_causes", job, ["cause"], ["total_ns"],
                                f" AND rank = {rank}"),
                    {(one["cause"],): (ns(one["total_ms"]),) for one in told["causes"]})
        return row

    def check_whole(self):
        """Every job is there once, and all of it is of one edition: what several queries say
        while no edition came."""
        while True:
            editions = "SELECT job, version FROM lull_jobs_data FINAL ORDER BY job"
            before = self.server.rows(editions)
            found = self.sums_of_all()
            if self.server.rows(editions) == before:
                break
        for table in TABLES[:-1]:
            self.assertEqual(found["strangers", table], 0, table)
        self.assertEqual(found["jobs"], found["ids"])
        for table in ("lull_causes", "lull_lines"):
            self.assertEqual(found["idle", table], found["idle"], table)
        return found["jobs"]

    def sums_of_all(self):
        found = {}
        for table in TABLES[:-1]:
            strangers = self.server.rows(
                f"SELECT count() AS n FROM {table} WHERE job NOT IN (SELECT job FROM lull_jobs)")
            found["strangers", table] = strangers[0]["n"]
        rows = self.server.rows(
            "SELECT count() AS jobs, uniqExact(job) AS ids, sum(idle_ns) AS idle FROM lull_jobs")
        found.update(rows[0])
        for table in ("lull_causes", "lull_lines"):
            sums = self.server.rows(f"SELECT sum(total_ns) AS idle FROM {table}")
            found["idle", table] = sums[0]["idle"]
        return found
