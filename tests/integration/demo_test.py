#!/usr/bin/env python3
"""The demo's training, one worker against three: what lull reports about waiting
for data and about the garbage collector is what the script measured by itself."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import guest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JOB = os.path.join(ROOT, "tools", "demo_job")
sys.path.insert(0, JOB)
import checks

PNGS = os.path.join(ROOT, ".cache", "demo", "png")


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="lull-demo-")
        os.environ.update(guest.lull_environment(cls.folder.name))
        cls.python = subprocess.run([os.path.join(ROOT, "tools", "python_with_torch")],
                                    check=True, stdout=subprocess.PIPE).stdout.decode().strip()
        subprocess.run([cls.python, os.path.join(JOB, "make_dataset.py"), PNGS], check=True)
        cls.results = {workers: cls.train(workers) for workers in (1, 3)}

    @classmethod
    def tearDownClass(cls):
        guest.stop_collector(cls.folder.name)
        cls.folder.cleanup()

    @classmethod
    def train(cls, workers):
        result = os.path.join(cls.folder.name, f"result-{workers}.json")
        subprocess.run([guest.LULL, "run", "--quiet", "--name", f"demo-{workers}", "--",
                        cls.python, "-W", "ignore::UserWarning", os.path.join(JOB, "train.py"),
                        "--data", PNGS, "--result", result, "--workers", str(workers),
                        "--epochs", "3"], check=True, stdout=subprocess.DEVNULL)
        with open(result) as file:
            return json.load(file)

    def test_every_number_agrees_with_the_script(self):
        for workers, result in self.results.items():
            for what, ours, theirs, good in checks.compare(guest.LULL, f"demo-{workers}", result):
                with self.subTest(workers=workers, what=what):
                    self.assertTrue(good, f"script {ours}, lull {theirs}")

    def test_with_one_worker_the_wait_for_data_is_most_of_the_time(self):
        share = checks.data_wait_ms(guest.LULL, "demo-1") / 1e3 / self.results[1]["train_s"]
        self.assertGreater(share, 0.5)

    def test_what_two_more_workers_win_is_what_the_script_says(self):
        # Nothing, or less, where other programs have the processors.
        said, measured = ([of(n) for n in (1, 3)] for of in (
            lambda n: checks.data_wait_ms(guest.LULL, f"demo-{n}"),
            lambda n: self.results[n]["data_wait_s"] * 1e3))
        self.assertAlmostEqual(said[0] - said[1], measured[0] - measured[1],
                               delta=checks.TOLERANCE * sum(measured))

    def test_waits_for_data_are_found_at_the_line_that_waits(self):
        rows = checks.query(guest.LULL, "waits", "demo-1")["host_waits"]
        data = max((row for row in rows if row["kind"] == "data"), key=lambda r: r["total_ms"])
        self.assertEqual((os.path.basename(data["site"]["file"]), data["site"]["line"],
                          data["site"]["function"]),
                         ("train.py", line_of("next(batch_iterator"), "train"))

    def test_tensor_allocations_are_found_at_the_lines_that_allocate(self):
        rows = checks.query(guest.LULL, "allocs", "demo-1")["allocation_sites"]
        lines = {row["site"]["line"]: row for row in rows
                 if row["site"]["file"].endswith("train.py") and row["allocator"] == "torch_cpu"}
        forward = lines.get(line_of("loss_function(model(images)"))
        backward = lines.get(line_of("loss.backward()"))
        self.assertIsNotNone(forward, f"only {sorted(lines)}")
        self.assertIsNotNone(backward, f"only {sorted(lines)}")
        # At least the three convolutions' outputs of every batch.
        per_batch = 16 * 4 * (16 * 64 * 64 + 32 * 32 * 32 + 32 * 16 * 16)
        self.assertGreaterEqual(forward["bytes"], self.results[1]["batches"] * per_batch)

    def test_nothing_was_lost_and_the_cost_is_within_the_budget(self):
        report = checks.query(guest.LULL, "gc", "demo-1")
        self.assertEqual(report["losses"]["events_lost"], 0)
        self.assertLess(report["overhead"]["percent"], 1.0)
        self.assertEqual(report["job"]["exit_status"], 0)


def line_of(text):
    with open(os.path.join(JOB, "train.py")) as file:
        found = [number for number, line in enumerate(file, 1) if text in line]
    assert len(found) == 1, (text, found)
    return found[0]


if __name__ == "__main__":
    unittest.main()
