#!/usr/bin/env python3
"""Ranks in processes of their own that communicate by the simulated NCCL. Run by ctest with
LULL_SIM."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import truth  # noqa: E402

PUPPET = os.path.join(HERE, "..", "puppets", "nccl_ranks.py")
SIM = os.environ["LULL_SIM"]
LATENCY_NS, BYTES_PER_NS = 10_000, 100  # nccl_latency_us, nccl_gbps


def bus_bytes(one):
    """What an AllReduce moves over the links of a rank."""
    return 2 * (one.ranks - 1) / one.ranks * one.bytes


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.shared = os.path.join(self.folder, "shared")
        os.mkdir(self.shared)

    def run_ranks(self, *options, config="", status=0):
        environment = dict(
            os.environ,
            LD_LIBRARY_PATH=SIM,
            LULL_SIM_LOG=os.path.join(self.folder, "truth"),
            LULL_SIM_CONFIG=config,
            LULL_SIM_NCCL_DIR=self.shared,
        )
        done = subprocess.run(
            [sys.executable, PUPPET, "--store", os.path.join(self.folder, "store"), *options],
            env=environment, capture_output=True, text=True, timeout=90)
        self.assertEqual(done.returncode, status, done.stderr)
        self.stderr = done.stderr
        self.assertEqual(os.listdir(self.shared), [])
        log = truth.load(os.path.join(self.folder, "truth"))
        self.assertEqual(log.dropped, 0)
        return log

    def known(self, rank):
        with open(os.path.join(self.folder, "store.%d" % rank)) as file:
            return json.load(file)

    def check_collectives(self, log):
        """Every one began on all of its ranks, and ended on all together."""
        for (_, sequence), ranks in sorted(log.collectives().items()):
            first = ranks[0]
            self.assertEqual([one.rank for one in sorted(ranks, key=lambda r: r.rank)],
                             list(range(first.ranks)))
            latest = max(one.start for one in ranks)
            end = latest + LATENCY_NS + round(bus_bytes(first) / BYTES_PER_NS)
            for one in ranks:
                self.assertEqual((one.end, one.error, one.members, one.calls),
                                 (end, 0, first.members, ["AllReduce"]), sequence)

    def check_kernels(self, log):
        """Each is a kernel as any other, of a launch that the program's thread made."""
        kernels = {(op.pid, op.correlation): op for op in log.ops("kernel", "ncclDevKernel")}
        launches = {(c.pid, c.correlation): c for c in log.calls("cuLaunchKernelEx")}
        self.assertEqual(len(kernels), len(log.exchanges()))
        self.assertEqual(set(kernels), set(launches))
        for one in log.exchanges():
            kernel = kernels[one.pid, one.correlation]
            self.assertEqual((kernel.start, kernel.end, kernel.stream, kernel.name),
                             (one.start, one.end, one.stream, one.name))
            call = launches[one.pid, one.correlation]
            self.assertEqual((call.tid, call.blocked), (kernel.tid, 0))
            self.assertEqual(call.tid, one.pid)
            self.assertGreater(one.start, call.start)

    def test_two_buckets_of_a_step_end_on_all_ranks_together(self):
        log = self.run_ranks("--ranks", "4", "--steps", "20")
        self.assertEqual(len(log.collectives()), 40)
        self.check_collectives(log)
        self.check_kernels(log)

    def test_all_wait_for_the_rank_that_pauses(self):
        log = self.run_ranks("--ranks", "3", "--steps", "10", "--late", "1", "--every", "5",
                             "--pause-ms", "200")
        self.check_collectives(log)
        pauses = self.known(1)["pauses"]
        self.assertEqual([step for step, _, _ in pauses], [4, 9])
        for step, start, end in pauses:
            ranks = log.collectives()[log.exchanges()[0].communicator, 2 * step]
            late = max(ranks, key=lambda one: one.start)
            self.assertEqual(late.rank, 1)
            self.assertGreater(late.start, end)
            for one in ranks:
                if one.rank != 1:
                    self.assertGreater(one.end - one.start, (end - start) / 2)

    def test_groups_of_tensor_parallel_ranks_have_communicators_of_their_own(self):
        log = self.run_ranks("--ranks", "4", "--steps", "10", "--tensor-parallel", "2")
        self.check_collectives(log)
        self.check_kernels(log)
        members = {tuple(one.members) for one in log.exchanges()}
        self.assertEqual(members, {(0, 1), (2, 3), (0, 2), (1, 3)})
        self.assertEqual(len({one.parent for one in log.exchanges()}), 1)

    def test_eight_ranks_sleep_while_they_wait(self):
        log = self.run_ranks("--ranks", "8", "--steps", "10", "--late", "5", "--every", "2",
                             "--pause-ms", "300")
        self.check_collectives(log)
        self.assertEqual(len(log.exchanges()), 8 * 20)
        for rank in range(8):  # of 1.5 s at least
            self.assertLess(self.known(rank)["cpu_s"], 0.5)

    def test_nobody_waits_for_a_rank_that_was_killed(self):
        before = time.monotonic()
        log = self.run_ranks("--ranks", "3", "--die", "1,4", status=3)
        self.assertLess(time.monotonic() - before, 30)
        self.assertIn(": process ", self.stderr)
        self.assertIn("rank 0 of 3: collective 8, AllReduce: ", self.stderr)
        self.assertIn("rank 2 of 3: collective 8, AllReduce: ", self.stderr)
        for rank in (0, 2):
            self.assertEqual(self.known(rank)["error"], 6)
        failed = [one for one in log.exchanges() if one.error]
        self.assertEqual({one.rank for one in failed}, {0, 2})
        self.assertEqual(min(one.sequence for one in failed), 8)

    def test_nobody_waits_for_ever_for_a_rank_that_hangs(self):
        environment = dict(os.environ, LD_LIBRARY_PATH=SIM, LULL_SIM_NCCL_DIR=self.shared,
                           LULL_SIM_CONFIG="nccl_timeout_s=1",
                           LULL_SIM_LOG=os.path.join(self.folder, "truth"), WORLD_SIZE="2")
        command = [sys.executable, PUPPET, "--store", os.path.join(self.folder, "store"),
                   "--ranks", "2", "--hang", "0,3"]
        ranks = [subprocess.Popen(command, env=dict(environment, RANK=str(rank)),
                                  stderr=subprocess.PIPE, text=True) for rank in range(2)]
        try:
            _, stderr = ranks[1].communicate(timeout=60)
            self.assertEqual(ranks[1].returncode, 3, stderr)
            self.assertIn("rank 0 has not come within 1 s", stderr)
        finally:
            for one in ranks:
                one.kill()
                one.communicate()


if __name__ == "__main__":
    unittest.main()
