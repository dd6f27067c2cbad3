#!/usr/bin/env python3
"""Samples of a real CPython program on the simulated device: `lull hot` and the lines of
`lull gaps` tell the shares that the program measured itself."""

import json
import os
import subprocess
import sys
import unittest

import contract
import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUPPETS = os.path.join(ROOT, "tests", "puppets")
sys.path[:0] = [PUPPETS, os.path.join(ROOT, "tools", "demo_job")]
import checks
import expected

SIM = os.environ["LULL_SIM"]
SECONDS = float(os.environ.get("LULL_SECONDS", "8"))
ALLOWED_SHARE = 0.02  # beside what chance makes of n samples, 3.3 deviations


def line(site):
    return expected.site("known_lines.py", site)


class KnownLines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        cls.known = cls.run_program("known")

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    @classmethod
    def run_program(cls, name, *options, seconds=SECONDS):
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--name", name, *options,
             "--", sys.executable, os.path.join(PUPPETS, "known_lines.py"), str(seconds)],
            {**cls.host.environment, "LD_LIBRARY_PATH": SIM,
             "LULL_SIM_CONFIG": "kernel_us.short_kernel=4"})
        if done.status != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def assert_share(self, part, whole, site, among, late=0):
        """`part` of `whole` samples is the program's share of `site` among these. Of those
        that were late some may be elsewhere than they should be."""
        share = self.known[site] / sum(self.known[name] for name in among)
        deviation = (share * (1 - share) / whole) ** 0.5
        self.assertAlmostEqual(part / whole, share, delta=ALLOWED_SHARE + late + 3.3 * deviation,
                               msg=f"{part} of {whole} samples in {site}")

    def test_hot_tells_the_shares_of_the_lines(self):
        answer = checks.query(guest.LULL, "hot", "known")
        contract.check(self, "hot", answer)
        # In C a function has no frame: it is the line that runs.
        samples = {row["line"]: row["self_samples"] for row in answer["lines"]
                   if row["file"].endswith("known_lines.py")}
        among = ("decode", "augment", "nap")
        whole = sum(samples[line(site)] for site in among)
        self.assertGreater(whole, 100)
        # On a full machine the sampler gets a processor when the program sleeps.
        late = answer["samples"]["late"] / answer["samples"]["taken"]
        for site in among:
            self.assert_share(samples[line(site)], whole, site, among, late)
        rows = {row["line"]: row for row in answer["lines"]}
        # On a busy machine it also waits for a processor when it is over: its millisecond
        # may be a twentieth of the nap.
        asleep = 100 * self.known["asleep"] / self.known["nap"]
        blocked = rows[line("nap")]["blocked_percent"]
        self.assertGreater(blocked, 0.5 * asleep)
        self.assertGreater(rows[line("decode")]["running_percent"]
                           + rows[line("decode")]["ready_percent"], 90)
        self.assertEqual({row["role"] for row in answer["lines"]}, {"main"})
        for row in answer["lines"]:
            self.assertLessEqual(row["low_percent"], row["total_percent"])
            self.assertLessEqual(row["self_percent"], row["total_percent"])

    def test_a_wait_for_a_processor_is_no_running(self):
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                  for _ in range(2 * len(os.sched_getaffinity(0)))]
        try:
            known = self.run_program("full", seconds=4)
        finally:
            for other in others:
                other.kill()
                other.wait()
        (nap,) = [row for row in checks.query(guest.LULL, "hot", "full")["lines"]
                  if row["line"] == line("nap") and row["file"].endswith("known_lines.py")]
        self.assertGreater(known["nap"], 2 * known["asleep"], "nobody took a processor")
        self.assertGreater(nap["blocked_percent"] + nap["ready_percent"], 75, nap)
        self.assertGreater(nap["ready_percent"], 20, nap)

    def test_gaps_tell_what_was_done_in_them(self):
        answer = checks.query(guest.LULL, "gaps", "known")
        contract.check(self, "gaps", answer)
        samples, whole = {}, 0
        for row in answer["gaps"]:
            if row["cause"] not in ("host_code", "launch_bound", "run_queue"):
                self.assertEqual(row["doing"], [], row)
                continue
            whole += row["samples"]
            for doing in row["doing"]:
                if doing["file"].endswith("known_lines.py"):
                    samples[doing["line"]] = samples.get(doing["line"], 0) + doing["samples"]
        among = ("decode", "augment")
        both = sum(samples[line(site)] for site in among)
        self.assertGreater(both, 0.8 * whole)
        for site in among:
            self.assert_share(samples[line(site)], both, site, among)
        worst = max((row for row in answer["gaps"] if row["doing"]),
                    key=lambda row: row["total_ms"])
        self.assertIn(worst["culprit"]["line"], (line("decode"), line("augment")))
        self.assertEqual(worst["culprit"]["line"], worst["doing"][0]["line"])
        self.assertGreater(answer["gpu"]["explained_percent"], 90)

    def test_folded_stacks_weigh_what_hot_says(self):
        done = subprocess.run([guest.LULL, "hot", "known", "--phase", "all", "--folded"],
                              stdout=subprocess.PIPE, text=True, check=True)
        weights = {}
        for row in done.stdout.splitlines():
            stack, _, weight = row.rpartition(" ")
            leaf = stack.rsplit(";", 1)[-1]
            weights[leaf] = weights.get(leaf, 0) + int(weight)
        told = {row["line"]: row["self_ms"] for row in
                checks.query(guest.LULL, "hot", "known")["lines"]
                if row["file"].endswith("known_lines.py")}
        path = os.path.join(PUPPETS, "known_lines.py")
        self.assertAlmostEqual(weights[f"decode ({path}:{line('decode')})"] / 1e3,
                               told[line("decode")], delta=0.01 * told[line("decode")])

    def test_a_job_without_samples_says_so(self):
        self.run_program("unseen", "--no-samples", seconds=1)
        done = subprocess.run([guest.LULL, "hot", "unseen"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("--no-samples", done.stderr)
        for row in checks.query(guest.LULL, "gaps", "unseen")["gaps"]:
            self.assertEqual((row["samples"], row["doing"]), (0, []))


if __name__ == "__main__":
    unittest.main(verbosity=2)
