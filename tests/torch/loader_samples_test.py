#!/usr/bin/env python3
"""DataLoader workers are looked at: forked, spawned, and of a fork server. Their lines are
those of the data set, and no process more than before is in the report."""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "integration")]
import guest

VENV = os.environ.get("LULL_TORCH_VENV", os.path.expanduser("~/.cache/lull/torch-venv"))


def setUpModule():
    global host
    host = guest.Host()
    os.environ.update(host.environment)


def tearDownModule():
    host.close()


def ask(verb, name):
    done = subprocess.run([guest.LULL, verb, name, "--json", "--top", "0"], stdout=subprocess.PIPE,
                          check=True)
    return json.loads(done.stdout)


class Workers(unittest.TestCase):
    def check(self, method):
        done = guest.execute([guest.LULL, "run", "--quiet", "--name", method, "--",
                              os.path.join(VENV, "bin", "python"),
                              os.path.join(HERE, "loading.py"), method, "5"],
                             host.environment)
        self.assertEqual((done.status, done.stdout), (0, "done\n"), done.stderr)
        lines = [line for line in ask("hot", method)["lines"] if line["role"] == "loader"]
        # Once per sample: the innermost of the data set's functions is one line.
        samples = {function: sum(line["samples"] for line in lines
                                 if line["function"] == function
                                 and line["file"].endswith("loading.py"))
                   for function in ("decode", "augment")}
        # 2 workers, 10 looks a second each: 100 in 5 s, if they had a processor each.
        self.assertGreater(samples["decode"], 2, lines)
        self.assertGreater(samples["augment"], 0, lines)
        self.assertGreater(samples["decode"] + samples["augment"], 8, lines)
        self.assertEqual(ask("report", method)["job"]["processes"], 1)

    def test_forked(self):
        self.check("fork")

    def test_spawned(self):
        self.check("spawn")

    def test_of_a_fork_server(self):
        self.check("forkserver")


if __name__ == "__main__":
    unittest.main()
