#!/usr/bin/env python3
"""An unmodified DistributedDataParallel over NCCL: `lull ranks` names the rank that the other
one waits for, with the line and what it cost."""

import os
import unittest

import scenario
from scenario import HERE, TorchCase, checks, guest

STEPS = 60


class Ddp(TorchCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def test_the_late_rank_is_named(self):
        sim = os.environ["LULL_SIM"]
        # The wheel has a run path to the vendor's NCCL, which needs a real device. And DDP compares
        # what it reads back of the shapes of parameters: nothing is made zero.
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--gpu", "continuous", "--overhead-budget", "100",
             "--name", "ddp", "--", scenario.ON_SIM, "torchrun", "--standalone",
             "--nproc_per_node", "2", os.path.join(HERE, "ddp.py"), "--steps", str(STEPS)],
            {**self.host.environment, "LULL_SIM_CONFIG": "zero_reads_kib=0;kernel_us=50",
             "LD_PRELOAD": os.path.join(sim, "libnccl.so.2"), "OMP_NUM_THREADS": "1"},
            timeout=900)
        self.assertEqual(done.status, 0, done.stderr)
        answer = checks.query(guest.LULL, "ranks", "ddp")
        self.assertTrue(answer["on_device"])
        self.assertEqual(answer["world_size"], 2)
        self.assertGreaterEqual(answer["collectives"], STEPS)
        first, other = answer["ranks"]
        self.assertEqual(first["rank"], 1)
        sleep = first["culprits"][0]
        self.assertEqual((sleep["cause"], os.path.basename(sleep["file"]), sleep["line"],
                          sleep["function"]),
                         ("sleep", "ddp.py",
                          scenario.line_of(os.path.join(HERE, "ddp.py"), "# SITE: late"),
                          "augment"))
        self.assertIn(sleep["steps"], range(STEPS // 5 - 2, STEPS // 5 + 1))
        self.assertAlmostEqual(sleep["cost_to_others_ms"], 50 * sleep["steps"],
                               delta=0.05 * 50 * sleep["steps"])
        self.assertLess(other["cost_to_others_ms"], 0.1 * sleep["cost_to_others_ms"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
