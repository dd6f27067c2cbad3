#!/usr/bin/env python3
"""Backward work of the CUDA build of PyTorch: every launch and every byte of the engine's
threads has the line that called backward(), its node, and, where the node was made by an
operator that did something, that operator's line."""

import json
import os
import unittest

import scenario
from scenario import Scenario, TorchCase, guest, python

SCRIPT = "backward.py"
STEPS = 6
# Made without any work, so that no line is known to be theirs.
VIEWS = ("SliceBackward0", "ViewBackward0", "TBackward0", "ExpandBackward0")


def line(name):
    return scenario.site(SCRIPT, name)


class LinesOfTheBackwardPass(TorchCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)
        cls.run_ = Scenario(cls.host, "backward", python(SCRIPT))
        cls.nodes = {}
        if cls.run_.done.status == 0:
            cls.nodes = {node: line(name)
                         for node, name in json.loads(cls.run_.done.stdout).items()}
        cls.nodes["TanhBackward0"] = line("recomputed")
        cls.nodes["SigmoidBackward0"] = line("thread_forward")

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def setUp(self):
        self.assert_ran(self.run_)
        self.assert_nothing_lost(self.run_)

    def backward_rows(self, rows):
        return [row["site"] for row in rows if "node" in row["site"]]

    def all_rows(self):
        return self.run_.kernels["kernels"] + self.run_.allocs["allocation_sites"]

    def caller_of(self, node):
        return line("thread_backward" if node == "SigmoidBackward0" else "backward")

    def test_no_launch_and_no_byte_is_without_a_line(self):
        self.assertEqual([row for row in self.all_rows() if not row["site"]["file"]], [])

    def test_backward_work_has_the_line_that_called_it(self):
        sites = self.backward_rows(self.all_rows())
        self.assertGreater(len(sites), 15)
        for site in sites:
            self.assertTrue(site["file"].endswith("/" + SCRIPT), site)
            self.assertEqual(site["line"], self.caller_of(site["node"]), site)
            self.assertEqual(site["backward_of"]["line"], site["line"])
            self.assertIn(site["backward_of"]["function"], ("train", "second_thread"))
            self.assertEqual(site["function"], site["node"])

    def test_every_node_has_the_line_of_its_operator(self):
        sites = self.backward_rows(self.all_rows())
        for site in sites:
            if site["node"] not in VIEWS + ("AccumulateGrad", "SumBackward0"):
                self.assertEqual(site["forward_site"]["line"], self.nodes[site["node"]], site)
        told = {site["node"] for site in sites if site["forward_site"]}
        self.assertGreaterEqual(told, set(self.nodes) - {"SumBackward0"})

    def test_a_view_has_no_forward_line_rather_than_that_of_another_operator(self):
        sites = [s for s in self.backward_rows(self.all_rows()) if s["node"] in VIEWS]
        self.assertIn("SliceBackward0", {site["node"] for site in sites})
        for site in sites:
            self.assertIsNone(site["forward_site"], site)

    def test_counts_are_those_of_the_program(self):
        launches = {}
        for row in self.run_.kernels["kernels"]:
            node = row["site"].get("node")
            launches[node] = launches.get(node, 0) + row["calls"]
        # One each for the input and the weight; the bias is a sum.
        self.assertEqual(launches["AddmmBackward0"], 3 * STEPS)
        for node in ("ExpBackward0", "GeluBackward0", "ReluBackward0", "TanhBackward0",
                     "SigmoidBackward0"):
            self.assertEqual(launches[node], STEPS, node)

    def test_python_on_an_engines_thread_keeps_its_own_line(self):
        sites = [row["site"] for row in self.run_.allocs["allocation_sites"]
                 if row["allocator"] == "torch_cuda" and row["site"]["line"] == line("custom")]
        self.assertEqual(len(sites), 1)
        self.assertNotIn("node", sites[0])

    def test_gaps_name_them_too(self):
        after = [row["after"] for row in self.run_.gaps["gaps"] if "node" in row["after"]]
        self.assertGreater(len(after), 0)
        for site in after:
            self.assertEqual(site["line"], self.caller_of(site["node"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
