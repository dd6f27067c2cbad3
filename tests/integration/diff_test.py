#!/usr/bin/env python3
"""lull diff on real runs of a program and of what an edit made of it. Counts are exact, so
they hold on any machine; nothing is asked of times but that they are not invented."""

import json
import os
import sys
import tempfile
import unittest

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "tests", "puppets", "compared.py")
STEPS = 120

# What an edit did to it is said by the name.
NAIVE = """
import ctypes


class Mean(object):
    def __init__(self, device):
        self.device = device

    def update(self, step):
        sync = self.device.cuda.cudaStreamSynchronize
        sync(self.device.stream)  # SITE: first
        self.device.launch("short_kernel")
        sync(self.device.stream)  # SITE: second
        if step % 2 == 0:
            sync(self.device.stream)  # SITE: even
"""
# Comments that came at the top move every line of the file.
SHIFTED = "# one\n# two\n# three\n" + NAIVE
MENDED = "# one\n# two\n" + "".join(
    line for line in NAIVE.splitlines(True) if "first" not in line and "second" not in line)
TWICE = NAIVE.replace("step % 2 == 0", "True")


def line_of(text, site):
    return 1 + [line.rstrip().endswith("SITE: " + site)
                for line in text.splitlines()].index(True)


class Comparison(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.folders = tempfile.TemporaryDirectory(prefix="lull-diff-")
        for name, text in (("naive", NAIVE), ("again", NAIVE), ("shifted", SHIFTED),
                           ("mended", MENDED), ("twice", TWICE)):
            cls.run_job(name, text)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()
        cls.folders.cleanup()

    @classmethod
    def run_job(cls, name, text, gpu="continuous", program=None):
        # Each version in a checkout of its own; the last two components stay.
        folder = os.path.join(cls.folders.name, name, "job")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "metrics.py"), "w") as file:
            file.write(text)
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", name, "--step-range", "step",
             "--gpu", gpu, "--overhead-budget", "100", "--",
             *(program or [sys.executable, PROGRAM, str(STEPS)])],
            {**cls.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
             "METRICS": folder, "LULL_SIM_CONFIG": "kernel_us=20"})
        assert (done.status, done.stderr) == (0, ""), done.stderr

    def diff(self, *arguments):
        done = guest.execute([guest.LULL, "diff", *arguments], self.host.environment)
        self.assertEqual((done.status, done.stderr), (0, ""))
        return done.stdout

    def compared(self, *arguments):
        return json.loads(self.diff(*arguments, "--json"))

    def lines(self, rows, key="site"):
        return sorted((os.path.basename(row[key]["file"]), row[key]["line"]) for row in rows)

    def test_syncs_that_an_edit_took_out_are_named(self):
        answer = self.compared("naive", "mended")
        syncs = answer["sync_points"]
        self.assertEqual(answer["reasons"], [])
        self.assertEqual(self.lines(syncs["gone"]),
                         [("metrics.py", line_of(NAIVE, "first")),
                          ("metrics.py", line_of(NAIVE, "second"))])
        self.assertEqual((syncs["new"], syncs["changed"], syncs["rare"]), ([], [], []))
        for row in syncs["gone"]:
            self.assertEqual((row["api"], row["a_calls_per_step"], row["b_calls_per_step"]),
                             ("cudaStreamSynchronize", 1, 0))
            self.assertIsNone(row["b_site"])
        # The third one stayed, on another line.
        (same,) = [row for row in syncs["same"] if "metrics" in row["site"]["file"]]
        self.assertEqual(self.lines([same], "a_site"),
                         [("metrics.py", line_of(NAIVE, "even"))])
        self.assertEqual(self.lines([same], "b_site"),
                         [("metrics.py", line_of(MENDED, "even"))])
        self.assertAlmostEqual(same["a_calls_per_step"], 0.5, delta=0.01)
        first = self.diff("naive", "mended").splitlines()[0]
        self.assertRegex(first, r"^two syncs gone \(\S*metrics\.py:\d+, :\d+\)")
        back = self.compared("mended", "naive")["sync_points"]
        self.assertEqual(self.lines(back["new"]), self.lines(syncs["gone"]))

    def test_one_run_a_side_never_says_faster(self):
        answer = self.compared("naive", "mended")
        self.assertEqual(answer["verdict"], "syncs_changed")
        self.assertFalse(answer["step_ms"]["known"])
        self.assertIsNone(answer["step_ms"]["runs_needed"])
        self.assertIn("one run a side", " ".join(answer["warnings"]))

    def test_the_same_program_differs_in_nothing(self):
        for other in ("again", "shifted"):
            with self.subTest(other):
                answer = self.compared("naive", other)
                syncs = answer["sync_points"]
                self.assertEqual(answer["verdict"], "no_difference_shown", answer)
                self.assertEqual([syncs[kind] for kind in
                                  ("gone", "new", "changed", "moved", "rare")], [[]] * 5)
                self.assertTrue(self.diff("naive", other).startswith(
                    "no difference that these runs can show"))

    def test_a_sync_that_is_called_more_often_has_changed(self):
        (row,) = self.compared("naive", "twice")["sync_points"]["changed"]
        self.assertEqual(self.lines([row]), [("metrics.py", line_of(NAIVE, "even"))])
        self.assertAlmostEqual(row["a_calls_per_step"], 0.5, delta=0.01)
        self.assertEqual(row["b_calls_per_step"], 1)

    def test_numbers_are_those_of_the_report(self):
        answer = self.compared("naive", "again")
        steps = json.loads(guest.execute(
            [guest.LULL, "steps", "naive", "--json", "--top", "0"],
            self.host.environment).stdout)["steps"]
        (run,) = answer["a"]
        self.assertEqual(run["steps"] + run["dropped_steps"],
                         len([step for step in steps if step["duration_ms"]]))
        kept = sorted(step["duration_ms"] for step in steps[-run["steps"]:])
        middle = (kept[(len(kept) - 1) // 2] + kept[len(kept) // 2]) / 2
        self.assertAlmostEqual(answer["step_ms"]["a"], middle, places=6)
        since = steps[-run["steps"]]["start_ms"]
        syncs = json.loads(guest.execute(
            [guest.LULL, "syncs", "naive", "--json", "--top", "0", "--since",
             f"{since:.6f}ms", "--until",
             f"{steps[-1]['start_ms'] + steps[-1]['duration_ms']:.6f}ms"],
            self.host.environment).stdout)["sync_points"]
        for row in answer["sync_points"]["same"]:
            (told,) = [point for point in syncs
                       if (point["site"], point["api"]) == (row["a_site"], row["api"])]
            self.assertEqual(row["a_calls"], told["calls"])
            self.assertAlmostEqual(row["a_blocked_ms_per_step"],
                                   told["blocked_ms"] / run["steps"], places=6)

    def test_what_is_not_alike_is_not_judged(self):
        self.run_job("host", MENDED, gpu="host")
        answer = self.compared("naive", "host")
        self.assertEqual(answer["verdict"], "cannot_judge")
        self.assertIn("other modes", " ".join(answer["reasons"]))
        self.run_job("nothing", MENDED, program=["true"])
        answer = self.compared("naive", "nothing")
        self.assertEqual(answer["verdict"], "cannot_judge")
        self.assertIsNone(answer["step_ms"])
        self.assertTrue(self.diff("naive", "nothing").startswith("cannot be judged: "))

    def test_several_runs_a_side(self):
        self.run_job("mended-2", MENDED)
        answer = self.compared("naive,again", "mended,mended-2")
        self.assertEqual(len(answer["a"]), 2)
        self.assertEqual(len(answer["sync_points"]["gone"]), 2)
        self.assertIn(answer["verdict"], ("faster", "slower", "syncs_changed"))
        step = answer["step_ms"]
        self.assertLessEqual(step["low_percent"], step["change_percent"])
        self.assertLessEqual(step["change_percent"], step["high_percent"])
        if answer["verdict"] == "faster":
            self.assertLess(step["high_percent"], 0)

    def test_a_page_has_what_json_has(self):
        path = os.path.join(self.folders.name, "diff.html")
        self.assertEqual(self.diff("naive", "mended", "--html", path), "")
        with open(path, encoding="utf-8") as file:
            page = file.read()
        data = page[page.index('id="lull-data">') + len('id="lull-data">'):]
        data = json.loads(data[:data.index("</script>")])
        self.assertEqual(data["diff"], self.compared("naive", "mended"))
        self.assertRegex(data["made_at"], r"^\d{4}-\d\d-\d\d")
        self.assertNotIn("connect-src", page)
        done = guest.execute([guest.LULL, "diff", "naive", "mended", "--html",
                              os.path.join(path, "no-folder")], self.host.environment)
        self.assertEqual((done.status, done.stdout), (1, ""))

    def test_wrong_command_lines(self):
        for arguments in (("naive",), ("naive", "naive"), ("naive,naive", "mended"),
                          ("naive,", "mended"), ("naive", "mended", "--difference", "0"),
                          ("naive", "mended", "--json", "--html", "x.html")):
            with self.subTest(arguments):
                done = guest.execute([guest.LULL, "diff", *arguments],
                                     self.host.environment)
                self.assertEqual((done.status, done.stdout), (2, ""))
                self.assertNotEqual(done.stderr, "")
        done = guest.execute([guest.LULL, "diff", "naive", "no-such"],
                             self.host.environment)
        self.assertEqual((done.status, done.stdout), (1, ""))


if __name__ == "__main__":
    unittest.main()
