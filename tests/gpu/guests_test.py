#!/usr/bin/env python3
"""On a real GPU: programs end under lull, in each mode, with the status and the output that they
have without it. A program that does not work without lull is skipped.

LULL_GPU_PYTHON  a Python with a CUDA build of PyTorch (python3); may be a command with arguments

Ends with status 77, which ctest takes for skipped, where there is no GPU."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import unittest

import gpu_test
from gpu_test import HERE, PYTHON, SKIPPED, checks, guest

STEPS = os.environ.get("LULL_GPU_STEPS", "400")
EXACT = ["--overhead-budget", "100"]  # no window is held up
MODES = {"host": ["--gpu", "host"], "window": EXACT,
         "finalized": ["--schedule", "finalize=1", *EXACT],
         "by_the_clock": ["--schedule", "wait=500ms,active=300ms", *EXACT],
         "continuous": ["--gpu", "continuous", *EXACT]}
PROGRAMS = {"eager": ["train.py", "resnet18", "--steps", STEPS],
            "graph": ["train.py", "resnet18", "--steps", STEPS, "--graph"],
            "transformer_graph": ["train.py", "transformer", "--steps", STEPS, "--graph"],
            "compiled": ["compiled.py"], "workers": ["workers.py"], "one_rank": ["one_rank.py"]}
TIMED = ("eager", "graph", "transformer_graph")  # print how long they took


def command(program):
    script, *arguments = PROGRAMS[program]
    return [*PYTHON, os.path.join(HERE, script), *arguments]


def setUpModule():
    global host, outcomes
    host = guest.Host()
    os.environ.update(host.environment)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {}
        for program in PROGRAMS:
            running[program, None] = pool.submit(
                guest.execute, command(program), host.environment, timeout=900)
            for mode, options in MODES.items():
                lull = [guest.LULL, "run", "--quiet", *options, "--name", f"{program}-{mode}", "--"]
                running[program, mode] = pool.submit(
                    guest.execute, [*lull, *command(program)], host.environment, timeout=900)
        outcomes = {key: future.result() for key, future in running.items()}


def tearDownModule():
    host.close()


class Guests(unittest.TestCase):
    maxDiff = None

    def test_programs_end_as_they_do_without_lull(self):
        for program in PROGRAMS:
            alone = outcomes[program, None]
            for mode in MODES:
                with self.subTest(program=program, mode=mode):
                    if alone.status != 0:
                        self.skipTest(f"status {alone.status} without lull")
                    under = outcomes[program, mode]
                    self.assertEqual(under.status, 0, under.stderr[-3000:])
                    if program not in TIMED:
                        self.assertEqual(under.stdout, alone.stdout)

    def test_their_gpu_was_traced_where_that_was_asked_for(self):
        for program in TIMED:
            for mode in MODES:
                with self.subTest(program=program, mode=mode):
                    gpu = checks.query(guest.LULL, "gaps", f"{program}-{mode}")["gpu"]
                    self.assertEqual(gpu["traced_ms"] > 0, mode != "host")

    def test_an_attached_training_goes_on_to_its_end(self):
        for program in ("eager", "graph"):
            with self.subTest(program):
                self.attach(program)

    def attach(self, program):
        with subprocess.Popen([*command(program), "--serve"], env=host.environment,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as training:
            try:
                self.assertIn("device", training.stdout.readline())
                print(STEPS, file=training.stdin, flush=True)
                attached = guest.execute([guest.LULL, "attach", str(training.pid), "--for", "2s",
                                          "--name", f"{program}-attached"], host.environment)
                self.assertEqual(attached.status, 0, attached.stderr)
                self.assertGreater(float(training.stdout.readline()), 0)
                training.stdin.close()
                self.assertEqual(training.wait(timeout=120), 0)
            finally:
                if training.poll() is None:
                    training.send_signal(signal.SIGKILL)


if __name__ == "__main__":
    if reason := gpu_test.why_not():
        print(f"no GPU to test on: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
