#!/usr/bin/env python3
"""Where lines of the backward pass are easily told wrong, or lost: exceptions, calls within
calls, threads that inherit a name, operators that allocate nothing, and sleep."""

import os
import signal
import subprocess
import tempfile
import unittest

import scenario
from scenario import Scenario, TorchCase, checks, guest, python

SCRIPT = "backward_trouble.py"


def line(name):
    return scenario.site(SCRIPT, name)


def told(rows):
    """{node: {(line of the caller, line of the operator)}}; None: not told."""
    result = {}
    for row in rows:
        site = row["site"]
        if "node" in site:
            pair = tuple(place["line"] if place else None
                         for place in (site["backward_of"], site["forward_site"]))
            result.setdefault(site["node"], set()).add(pair)
    return result


class BackwardInTrouble(TorchCase):
    @classmethod
    def setUpClass(cls):
        cls.host = guest.Host()
        os.environ.update(cls.host.environment)

    @classmethod
    def tearDownClass(cls):
        cls.host.close()

    def run_(self, name):
        run = Scenario(self.host, name, python(SCRIPT, name))
        self.assert_ran(run)
        self.assert_nothing_lost(run)
        return told(run.kernels["kernels"] + run.allocs["allocation_sites"])

    def callers(self, nodes, node):
        return {caller for caller, _ in nodes[node]}

    def test_the_caller_is_known_after_others_were_thrown_out(self):
        nodes = self.run_("thrown")
        self.assertEqual(self.callers(nodes, "SigmoidBackward0"), {line("after_exceptions")})

    def test_a_node_that_calls_backward_works_for_the_outer_caller(self):
        nodes = self.run_("nested")
        self.assertEqual(self.callers(nodes, "ExpBackward0"), {line("outer")})
        self.assertEqual(self.callers(nodes, "TanhBackward0"), {line("outer")})

    def test_a_thread_that_a_hook_began_has_a_caller_of_its_own(self):
        nodes = self.run_("spawned")
        # The engine has the work of two callers at once, and that of one afterwards.
        self.assertLessEqual(self.callers(nodes, "SigmoidBackward0"), {line("of_spawned"), None})
        self.assertLessEqual(self.callers(nodes, "TanhBackward0"), {line("of_main"), None})

    def test_the_first_node_has_the_line_of_its_operator(self):
        nodes = self.run_("first_in_place")
        self.assertEqual({forward for _, forward in nodes["AddBackward0"]}, {line("in_place")})

    def test_no_operator_has_the_line_of_the_next_tensor(self):
        nodes = self.run_("operators")
        wrong = {node for node, lines in nodes.items()
                 if any(forward == line("next_to_operator") for _, forward in lines)}
        self.assertEqual(wrong, set())
        known = {node for node, lines in nodes.items() if any(forward for _, forward in lines)}
        self.assertGreater(len(known), 45, known)

    def test_a_class_in_an_anonymous_namespace_has_a_name(self):
        nodes = self.run_("scripted")
        self.assertIn("DifferentiableGraphBackward", nodes)

    def test_what_was_made_while_lull_slept_has_no_line(self):
        with tempfile.TemporaryDirectory(prefix="lull-slept-") as folder:
            def at(name, verb):
                path = os.path.join(folder, name)
                guest.wait_until(lambda: os.path.exists(path) or job.poll() is not None)
                if verb:
                    done = subprocess.run([guest.LULL, verb, "slept"], capture_output=True,
                                          text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                os.remove(path)

            job = subprocess.Popen(
                [guest.LULL, "run", "--dormant", "--quiet", "--overhead-budget", "100",
                 "--name", "slept", "--", *python(SCRIPT, "slept", folder)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**self.host.environment, "LULL_SIM_CONFIG": scenario.CONFIG})
            try:
                for name, verb in (("awake", "arm"), ("asleep", "disarm"),
                                   ("awake_again", "arm"), ("done", None)):
                    at(name, verb)
                outcome = (*job.communicate(timeout=60), job.returncode)
            finally:
                job.kill()
        self.assertEqual(outcome, ("", "", 0))
        rows = checks.query(guest.LULL, "allocs", "slept")["allocation_sites"]
        nodes = told(rows)
        self.assertEqual({forward for _, forward in nodes["SigmoidBackward0"]}, {None})


    def test_what_an_attach_found_under_way_is_not_the_work_of_who_comes_next(self):
        job = subprocess.Popen(
            python(SCRIPT, "attached"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env={**self.host.environment, "LULL_SIM_CONFIG": scenario.CONFIG})
        attach = None
        try:
            self.assertEqual(job.stdout.readline(), "inside\n")
            attach = subprocess.Popen(
                [guest.LULL, "attach", str(job.pid), "--gpu", "continuous",
                 "--overhead-budget", "100", "--name", "attached"],
                env=self.host.environment, stderr=subprocess.PIPE, text=True)
            self.assertIn("watching process", attach.stderr.readline())
            job.stdin.write("\n")
            job.stdin.flush()
            self.assertEqual(job.stdout.readline(), "done\n")
            attach.send_signal(signal.SIGINT)
            attach.communicate(timeout=60)
            job.stdin.write("\n")
            job.stdin.flush()
            self.assertEqual(job.wait(timeout=60), 0)
        finally:
            for process in (job, attach):
                if process is not None and process.poll() is None:
                    process.kill()
                    process.wait()
            job.stdin.close()
            job.stdout.close()
            if attach is not None:
                attach.stderr.close()
        rows = checks.query(guest.LULL, "allocs", "attached")["allocation_sites"]
        found = [row["site"] for row in rows if row["site"]["function"] == "TanhBackward0"]
        self.assertGreater(len(found), 0)
        self.assertEqual([site for site in found if site["line"]], [])
        nodes = told(rows)
        self.assertEqual(self.callers(nodes, "SigmoidBackward0"), {line("after_attach")})


if __name__ == "__main__":
    unittest.main(verbosity=2)
