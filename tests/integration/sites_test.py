#!/usr/bin/env python3
"""A C++ program built by nvcc: each row of gaps, syncs, kernels and allocs names a line
that stands in its own source and does what the row says."""

import os
import re
import sys
import unittest

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tools", "demo_job")]
import checks

SOURCE = os.path.join(ROOT, "tests", "puppets", "sites.cu")
BUILT = os.environ["LULL_PUPPETS"]
SIM = os.environ["LULL_SIM"]
PROGRAMS = [os.path.join(BUILT, f"sites_nvcc_O{level}") for level in (0, 2)]
KERNELS = ("plain", "filled", "of_c", "own", "hidden", "named")


def marked():
    """{line: text} of the lines that lull should name."""
    with open(SOURCE) as file:
        return {number: text for number, text in enumerate(file, 1)
                if text.rstrip().endswith("// SITE")}


class Sites(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        cls.addClassCleanup(cls.host.close)
        os.environ.update(cls.host.environment)
        cls.lines = marked()
        for program in PROGRAMS:
            name = os.path.basename(program)
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--name", name, "--gpu", "continuous",
                 "--overhead-budget", "50", "--", program],
                {**cls.host.environment, "LD_LIBRARY_PATH": SIM,
                 "LULL_SIM_CONFIG": "kernel_us=100"})
            assert done.status == 0 and done.stdout == "done\n", done.stderr

    def rows(self, verb, key):
        for program in PROGRAMS:
            name = os.path.basename(program)
            answer = checks.query(guest.LULL, verb, name)
            self.assertTrue(answer[key], f"{verb} {name}")
            yield from ((name, row) for row in answer[key])

    def check(self, name, site, what):
        with self.subTest(program=name, what=what, site=site):
            self.assertEqual(site["file"], SOURCE)
            self.assertIn(site["line"], self.lines)
            return self.lines[site["line"]]

    def test_each_row_of_kernels_names_its_launch(self):
        seen = set()
        for name, row in self.rows("kernels", "kernels"):
            text = self.check(name, row["site"], row["name"])
            kernel = re.search(r"(\w+)(<.*>)?(\(.*\))?$", row["name"])[1]
            self.assertRegex(text, rf"\b{kernel}(<<<|, )")
            seen.add((name, kernel))
        self.assertEqual(seen, {(os.path.basename(program), kernel) for program in PROGRAMS
                                for kernel in KERNELS})

    def test_each_row_of_syncs_names_its_call(self):
        for name, row in self.rows("syncs", "sync_points"):
            self.assertIn(row["api"], self.check(name, row["site"], row["api"]))

    def test_each_row_of_allocs_names_its_call(self):
        for name, row in self.rows("allocs", "allocation_sites"):
            self.assertRegex(self.check(name, row["site"], "cuda"), "cuda(Malloc|Free)")

    def test_each_row_of_gaps_names_the_calls_around_it(self):
        for name, row in self.rows("gaps", "gaps"):
            for part in ("before", "after", "culprit"):
                site = row[part]
                if part == "before" and not site["file"]:
                    # Before a thread's first launch there is none.
                    self.assertEqual(site["function"], "", row)
                    continue
                self.check(name, site, f"{part} {row['cause']}")


if __name__ == "__main__":
    if not all(map(os.path.exists, PROGRAMS)):
        print("sites_test: SKIPPED, the build found no nvcc: of what it compiles nothing "
              "was tested", file=sys.stderr)
        sys.exit(77)
    unittest.main()
