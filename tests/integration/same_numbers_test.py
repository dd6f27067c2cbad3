#!/usr/bin/env python3
"""One recorded job, read from the page, from `lull top`, from the JSON and from the text: the
numbers are equal, as each shows them. (tests/look/page_look_test.py reads them from the page as
a browser shows it.)"""

import json
import os
import re
import sys
import tempfile
import unittest

import diff_test
import guest
from page_test import Page, with_frames
from top_test import Screen

# Others read as their keys (daemon/words/cause_words.h).
CAUSES = {"gc": "GC pause", "gil_wait": "GIL wait", "launch_bound": "launch-bound"}


def digits(value):
    """Three significant ones, as all of lull's words have them (daemon/words/format.h)."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def duration(ms):
    ns = round(ms * 1e6)
    for unit, size in (("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if ns < 1000:
            return f"{ns} ns"
        if ns < 999.5 * size:
            return f"{digits(ns / size)} {unit}"
    raise AssertionError("the job took longer than a test may")


def share(part, whole):
    percent = 100 * part / whole
    return f"{percent:.2f} %" if percent < 9.995 else f"{percent:.1f} %"


def record(host, folder, name):
    """A job with syncs, kernels and steps, on the simulated device."""
    with open(os.path.join(folder, "metrics.py"), "w", encoding="utf-8") as file:
        file.write(diff_test.NAIVE)
    done = guest.execute(
        [guest.LULL, "run", "--quiet", "--name", name, "--step-range", "step", "--gpu",
         "continuous", "--", sys.executable, diff_test.PROGRAM, str(diff_test.STEPS)],
        {**host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"], "METRICS": folder,
         "LULL_SIM_CONFIG": "kernel_us=100"})
    assert (done.status, done.stderr) == (0, ""), done.stderr


class SameNumbers(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        with tempfile.TemporaryDirectory(prefix="lull-t-") as folder:
            record(cls.host, folder, "one")
            cls.json = cls.read_json("report", "--top", "100")
            cls.steps = cls.read_json("steps", "--top", "0")["steps"]
            cls.text = cls.lull("report", "one", "--phase", "all", "--top", "100")
            path = os.path.join(folder, "one.html")
            cls.lull("report", "one", "--phase", "all", "--html", path)
            with open(path, encoding="utf-8") as file:
                data = Page(file.read()).data
        cls.page = with_frames(data, data["frames"])
        cls.top = cls.read_top()

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    @classmethod
    def lull(cls, *arguments):
        done = guest.execute([guest.LULL, *arguments], cls.host.environment)
        assert done.status == 0, done.stderr
        return done.stdout

    @classmethod
    def read_json(cls, verb, *arguments):
        return json.loads(cls.lull(verb, "one", "--phase", "all", "--json", *arguments))

    @classmethod
    def read_top(cls):
        """All of its tables, as a terminal shows them."""
        screen = Screen({**cls.host.environment, "LANG": "C.UTF-8", "NO_COLOR": "1"}, guest.LULL,
                        "top", "one", "--last", "all", columns=220, rows=90)
        try:
            texts = []
            for key, name in enumerate(("gaps", "syncs", "host", "waits", "kernels"), start=1):
                screen.keys(str(key))
                texts.append(screen.shows(rf"\[{key} {name}\]"))
            return "\n".join(texts)
        finally:
            screen.close()

    def rows(self, text, rows):
        """Each of `rows`, cell by cell, begins a line of a table of `text`."""
        self.assertTrue(rows)
        for row in rows:
            pattern = r"(?m)^ +" + r"  +".join(map(re.escape, row)) + r"(  |$)"
            self.assertRegex(text, pattern)

    def test_the_page_has_the_report(self):
        told = dict(self.json)
        for key in ("sources",):  # the page has more of them
            told.pop(key)
        self.assertEqual({key: self.page["report"][key] for key in told}, told)
        self.assertEqual(self.page["steps"]["steps"][-5:], self.steps[-5:])

    def test_how_busy_the_gpu_was(self):
        gpu = self.json["gpu"]
        busy = share(gpu["busy_ms"], gpu["traced_ms"])
        traced = duration(gpu["traced_ms"])
        self.assertIn(f"GPU busy {busy} of traced time ({duration(gpu['busy_ms'])} of {traced}",
                      self.text)
        self.assertIn(f"GPU busy {busy} of {traced} traced; idle: ", self.top)
        self.assertTrue(self.page["lines"]["busy"].startswith(
            f"GPU busy {busy} of traced time ({duration(gpu['busy_ms'])} of {traced}"))

    def test_idle_time_by_cause(self):
        gpu, causes = self.json["gpu"], self.json["causes"]
        self.assertAlmostEqual(sum(row["total_ms"] for row in causes), gpu["idle_ms"], places=5)
        self.assertIn(f"Idle: {duration(gpu['idle_ms'])}, by cause", self.text)
        self.rows(self.text, [(duration(row["total_ms"]), share(row["total_ms"], gpu["idle_ms"]))
                              for row in causes])
        line = " ".join(self.top.split())
        for row in causes[:3]:
            self.assertIn(f"{CAUSES.get(row['cause'], row['cause'].replace('_', ' '))} "
                          f"{share(row['total_ms'], gpu['traced_ms'])}", line)

    def test_idle_time_by_line(self):
        idle = self.json["gpu"]["idle_ms"]
        rows = self.json["gaps"][:20]
        self.rows(self.text, [(duration(row["total_ms"]), share(row["total_ms"], idle))
                              for row in rows])
        self.rows(self.top, [(duration(row["total_ms"]), share(row["total_ms"], idle))
                             for row in rows])

    def test_sync_points(self):
        rows = self.json["sync_points"]
        total = self.json["summary"]["sync_blocked_ms"]
        self.assertAlmostEqual(sum(row["blocked_ms"] for row in rows), total, places=5)
        self.rows(self.text, [(duration(row["blocked_ms"]), share(row["blocked_ms"], total),
                               f"{row['calls']:,}") for row in rows])
        self.rows(self.top, [(duration(row["blocked_ms"]),
                              duration(row["wasted_ms"]) if row["judged_calls"] else "-",
                              f"{row['calls']:,}", row["api"]) for row in rows])

    def test_kernels(self):
        rows = self.json["kernels"]
        total = sum(row["total_ms"] for row in rows)
        for text in (self.top, self.text):
            self.rows(text, [(duration(row["total_ms"]), share(row["total_ms"], total),
                              f"{row['calls']:,}") for row in rows])

    def test_median_step(self):
        known = sorted(step["duration_ms"] for step in self.steps if step["duration_ms"])
        (process,) = [row for row in self.json["processes"] if row["gpu"]]
        step = duration(known[(len(known) - 1) // 2])
        self.rows(self.top, [(f"pid {process['pid']}", step,
                              share(process["busy_ms"], process["traced_ms"]))])
        (band,) = self.page["timeline"]["steps"]  # in ticks of 100 ns, a half is one more
        self.assertEqual(sorted(band["duration"]), [(round(ms * 1e6) + 50) // 100 for ms in known])

    def test_what_measuring_cost(self):
        self.assertIn(self.page["lines"]["overhead"], self.text.replace("\n", " "))


if __name__ == "__main__":
    unittest.main(verbosity=2)
