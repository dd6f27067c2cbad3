#!/usr/bin/env python3
"""On a real GPU: what lull says of a training is what torch.profiler says of the same
training in a run of its own. (What it costs: cost.py.)

LULL_GPU_PYTHON  a Python with a CUDA build of PyTorch (python3); may be a command with
                 arguments: "tests/torch/run_on_sim python" tries these tests themselves

Ends with status 77, which ctest takes for skipped, where there is no GPU."""

import json
import os
import shlex
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration"),
                os.path.join(ROOT, "tools", "demo_job")]
import checks
import guest

PYTHON = shlex.split(os.environ.get("LULL_GPU_PYTHON", "python3"))
STEPS = int(os.environ.get("LULL_GPU_STEPS", "100"))
BUSY_TOLERANCE = 0.02
SKIPPED = 77


def why_not():
    """Why there is nothing to test here; empty where there is."""
    probe = subprocess.run([*PYTHON, "-c", "import torch; assert torch.cuda.is_available()"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if probe.returncode == 0:
        return ""
    return (probe.stderr.strip().splitlines() or [f"status {probe.returncode}"])[-1]


def setUpModule():
    global host
    host = guest.Host()
    os.environ.update(host.environment)


def tearDownModule():
    host.close()


def train(*arguments, prefix=()):
    done = guest.execute([*prefix, *PYTHON, os.path.join(HERE, "train.py"), *arguments],
                         host.environment, timeout=900)
    if done.status != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def prefix(name, mode):
    return [guest.LULL, "run", "--quiet", "--gpu", mode, "--name", name, "--"]


class AgainstTorchProfiler(unittest.TestCase):
    def compare(self, model):
        arguments = (model, "--steps", str(STEPS))
        reference = train(*arguments, "--profile")
        found = train(*arguments, prefix=[*prefix(model, "continuous")[:-1],
                                          "--overhead-budget", "100", "--"])
        start = host.start_ns(model)
        span = ["--since", f"{(found['begin_ns'] - start) / 1e6:.6f}ms",
                "--until", f"{(found['end_ns'] - start) / 1e6:.6f}ms"]
        gpu = checks.query(guest.LULL, "gaps", model, *span)["gpu"]
        self.assertIsNone(gpu["missing"])
        for what in ("cupti_dropped", "records_lost", "records_bad", "late_operations"):
            self.assertEqual(gpu[what], 0, what)
        self.assertEqual(gpu["kernels"], reference["kernels"])
        self.assertAlmostEqual(gpu["busy_ms"], reference["busy_ms"],
                               delta=BUSY_TOLERANCE * reference["busy_ms"])
        self.assertAlmostEqual(gpu["busy_ms"] + gpu["idle_ms"], gpu["traced_ms"], delta=1e-3)
        self.assertLess(gpu["unknown_ms"], 0.01 * gpu["traced_ms"])

    def test_resnet18_runs_the_same_kernels_for_the_same_time(self):
        self.compare("resnet18")

    def test_a_transformer_runs_the_same_kernels_for_the_same_time(self):
        self.compare("transformer")


if __name__ == "__main__":
    if reason := why_not():
        print(f"no GPU to test on: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
