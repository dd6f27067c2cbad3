#!/usr/bin/env python3
"""Ranks that communicate by the simulated NCCL: which one the others waited for, why and at what
cost, by the kernels of their devices; in data-parallel and in tensor-parallel groups."""

import json
import os
import sys
import tempfile
import unittest

import guest
from page_test import Page

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tools", "demo_job")]
import checks
import expected

LATE = 2
EVERY, PAUSE_MS = 5, 40


class Nccl(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def command(self, folder, ranks, *options):
        return [sys.executable, os.path.join(PUPPETS, "nccl_ranks.py"), "--store",
                os.path.join(folder, "store"), "--ranks", str(ranks), "--pause-ms",
                str(PAUSE_MS), "--every", str(EVERY), *options]

    def environment(self):
        return {**self.host.environment, "LD_LIBRARY_PATH": os.environ["LULL_SIM"],
                "LULL_SIM_CONFIG": "kernel_us=200"}

    def run_ranks(self, name, ranks, *options, lull=("--gpu", "continuous")):
        """What `lull ranks` says, and the pauses of the late rank in ms."""
        with tempfile.TemporaryDirectory(prefix="lull-nccl-") as folder:
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--overhead-budget", "100", "--name", name, *lull,
                 "--", *self.command(folder, ranks, "--late", str(LATE), *options)],
                self.environment())
            self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))
            with open(os.path.join(folder, f"store.{LATE}"), encoding="utf-8") as file:
                pauses = [(end - start) / 1e6 for _, start, end in json.load(file)["pauses"]]
        answer = checks.query(guest.LULL, "ranks", name)
        self.assertTrue(answer["on_device"])
        self.assertEqual(answer["world_size"], ranks)
        return answer, pauses

    def check_the_late_one(self, answer, pauses, others, least):
        """Others' causes are those of a machine that has fewer processors than ranks."""
        first = answer["ranks"][0]
        self.assertEqual(first["rank"], LATE)
        worst = first["culprits"][0]
        self.assertEqual((worst["cause"], os.path.basename(worst["file"]), worst["line"]),
                         ("sleep", "nccl_ranks.py", expected.site("nccl_ranks.py", "late")))
        # Before the first collective of all nobody knows what is usual.
        self.assertGreaterEqual(worst["steps"], least)
        self.assertLessEqual(worst["steps"], len(pauses))
        mean = sum(pauses) / len(pauses)
        self.assertAlmostEqual(worst["cost_to_others_ms"], worst["steps"] * mean * others,
                               delta=0.05 * worst["steps"] * mean * others)
        for row in answer["ranks"][1:]:
            self.assertLess(row["cost_to_others_ms"], 0.05 * worst["cost_to_others_ms"])

    def test_the_late_rank_of_four_is_named(self):
        answer, pauses = self.run_ranks("dp", 4, "--steps", "100")
        self.assertEqual(len(pauses), 20)
        self.assertEqual(answer["collectives"], 200)
        self.assertEqual(answer["clock"], {"error_ns": 0, "error_kind": "bound"})
        self.check_the_late_one(answer, pauses, others=3, least=19)
        self.assertLess(answer["unmatched_ms"], 1)
        for row in answer["ranks"]:
            self.assertLessEqual(row["exposed_ms"], row["communication_ms"])
            if row["rank"] != LATE:
                self.assertGreater(row["waited_ms"], 18 * PAUSE_MS)
        cells = answer["late_stretches"]
        self.assertAlmostEqual(sum(one["cost_to_others_ms"] for one in cells if one["rank"] == LATE),
                               answer["ranks"][0]["cost_to_others_ms"], places=3)
        self.check_the_page(answer)
        advice = checks.query(guest.LULL, "report", "dp")["summary"]["advice"]
        late = [one for one in advice if one["rule"] == "late_rank"]
        self.assertEqual(late[0]["site"]["line"], expected.site("nccl_ranks.py", "late"))

    def check_the_page(self, answer):
        with tempfile.TemporaryDirectory(prefix="lull-nccl-") as folder:
            path = os.path.join(folder, "page.html")
            done = guest.execute([guest.LULL, "report", "dp", "--phase", "all", "--html", path],
                                 self.host.environment)
            self.assertEqual(done.status, 0, done.stderr)
            with open(path, encoding="utf-8") as file:
                ranks = Page(file.read()).data["ranks"]
        self.assertIn(f"Rank {LATE} was late in", ranks.pop("story")[0])
        self.assertEqual(ranks.pop("late_left_out"), 0)
        self.assertEqual(ranks, {key: answer[key] for key in ranks})

    def test_a_late_rank_in_groups_of_two_kinds(self):
        """Ranks 2 and 3 are one tensor-parallel group: 3 comes late to its data-parallel group
        since it waited for 2, and is not charged. The two data-parallel groups are in step, so
        that nobody can tell them apart: what they cost is not told."""
        answer, pauses = self.run_ranks("tp", 4, "--steps", "100", "--tensor-parallel", "2")
        first = answer["ranks"][0]
        self.assertEqual(first["rank"], LATE)
        worst = first["culprits"][0]
        self.assertEqual((worst["cause"], worst["line"]),
                         ("sleep", expected.site("nccl_ranks.py", "late")))
        self.assertGreaterEqual(worst["steps"], 18)
        self.assertLessEqual(worst["steps"], len(pauses))
        once = sum(pauses) * worst["steps"] / len(pauses)
        self.assertGreater(worst["cost_to_others_ms"], 0.95 * once)
        self.assertLess(worst["cost_to_others_ms"], 1.05 * 3 * once)
        for row in answer["ranks"][1:]:
            self.assertLess(row["cost_to_others_ms"], 0.05 * worst["cost_to_others_ms"])

    def test_windows(self):
        answer, pauses = self.run_ranks(
            "windows", 4, "--steps", "200",
            lull=("--schedule", "wait=300ms,warmup=100ms,active=1s"))
        self.assertGreater(answer["collectives"], 50)
        self.assertLess(answer["collectives"], 400)
        self.check_the_late_one(answer, pauses, others=3, least=3)

    def test_nothing_is_guessed_where_nothing_was_traced(self):
        with tempfile.TemporaryDirectory(prefix="lull-nccl-") as folder:
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--gpu", "host", "--name", "host", "--",
                 *self.command(folder, 2, "--steps", "20")], self.environment())
            self.assertEqual((done.status, done.stdout, done.stderr), (0, "", ""))
        done = guest.execute([guest.LULL, "ranks", "host"], self.host.environment)
        self.assertEqual(done.status, 1)
        self.assertIn("where the GPU was traced", done.stderr)

    def test_programs_end_as_they_do_without_us(self):
        for options, status in (("--die", "1,5"), 1), (("--steps", "5"), 0):
            with self.subTest(options):
                outcome = []
                for prefix in ([], [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--"]):
                    with tempfile.TemporaryDirectory(prefix="lull-nccl-") as folder:
                        done = guest.execute([*prefix, *self.command(folder, 2, *options)],
                                             self.environment())
                        outcome.append(done.status)
                self.assertEqual(outcome[0], outcome[1])
                self.assertEqual(outcome[0] != 0, status != 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
