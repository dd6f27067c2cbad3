#!/usr/bin/env python3
"""`lull regions` of programs that open regions by record_function in every way that there
is: nested, by threads, left by exceptions, ended by another thread, beside a profiler,
over a fork. Counts are exact, and each region lies between what the program's own clock says
just within it and just around it (region_clock.py)."""

import json
import os
import tempfile
import unittest

import contract
import guest
import loader_test
import region_clock

PUPPETS = loader_test.PUPPETS


# Whether PyTorch has a global callback, asked after each collection.
CALLBACK = """
import ctypes, gc, torch
cpu = ctypes.CDLL(torch.__path__[0] + "/lib/libtorch_cpu.so")
has_one = cpu._ZN2at18hasGlobalCallbacksEv
has_one.restype = ctypes.c_bool
torch.ones(2).sum()
for _ in range(3):
    gc.collect()
    print(has_one())
    with torch.autograd.profiler.record_function("mine"):
        pass
"""


class Scopes(loader_test.TorchOnTheCpu):
    def run_scopes(self, name):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "told")
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--name", name, "--overhead-budget", "100",
                 "--", self.python, "-W", "ignore", os.path.join(PUPPETS, "scopes.py"), file, name],
                self.host.environment)
            self.assertEqual((done.status, done.stdout), (0, ""), done.stderr)
            with open(file) as told:
                script = json.load(told)
        if not loader_test.known(script["torch"]):
            self.skipTest(f"PyTorch {script['torch']}")
        self.version = script["torch"]
        answer = self.ask("regions", name)
        contract.check(self, "regions", answer)
        self.assertEqual((answer["unnamed"], answer["unopened"]), (0, 0))
        rows = {"/".join([*row["path"], row["name"]]): row for row in answer["regions"]}
        self.assertEqual(len(rows), len(answer["regions"]))
        self.exported = region_clock.exported(name, self.host.start_ns(name),
                                              self.host.environment)
        rows.pop("later still", None)  # at the interpreter's very end it may or may not be
        return script["regions"], rows

    def check_scopes(self, name):
        return self.compare(*self.run_scopes(name))

    def compare(self, script, rows):
        self.assertEqual({path: row["count"] for path, row in rows.items()},
                         {path: len(noted) for path, noted in script.items()})
        for path, noted in script.items():
            within = [end - start for _, start, end, _, _ in noted]
            around = [after - before for before, _, _, after, _ in noted]
            told = rows[path]["total_ms"] * 1e6
            self.assertGreaterEqual(told + 1, sum(within), path)
            self.assertLessEqual(told - 1, sum(around), path)
            self.assertGreaterEqual(rows[path]["max_ms"] * 1e6 + 1, max(within), path)
        self.distances = region_clock.compare(self, script, self.exported)
        self.distances.print(self.id().rsplit(".", 1)[-1])
        return rows

    def test_nested(self):
        rows = self.check_scopes("nested")
        self.assertEqual(rows["epoch/step"]["count"], 20)
        self.assertTrue(rows["epoch/step/forward"]["site"]["file"].endswith("scopes.py"))

    def test_left_by_exceptions(self):
        self.check_scopes("exceptions")

    def test_of_threads(self):
        self.check_scopes("threads")

    def test_a_hundred_deep(self):
        rows = self.check_scopes("deep")
        self.assertEqual(len(rows), 100)

    def test_ended_by_another_thread_and_in_any_order(self):
        self.check_scopes("handed_over")

    def test_of_generators_and_coroutines(self):
        self.check_scopes("generators")

    def test_beside_a_profiler(self):
        self.check_scopes("profiler")

    def test_over_a_fork(self):
        script, rows = self.run_scopes("fork")
        # The child has what was open forgotten. A scope of its own makes it record only
        # where PyTorch allocates a tensor for one, as 1.13 does.
        children = len(self.ask("report", "fork")["processes"]) - 1
        in_child = rows.pop("in_child", {"count": 0})
        self.assertEqual(in_child["count"], children)
        self.assertEqual("1.13" in self.version, children == 1)
        self.compare(script, rows)

    def test_names_with_numbers_are_one(self):
        self.check_scopes("numbers")

    def test_while_the_interpreter_ends(self):
        self.check_scopes("at_exit")

    def test_no_callback_stays_with_pytorch(self):
        # PyTorch's own cost of one (docs/decisions/cheap_host_mode.md).
        done = guest.execute(
            [guest.LULL, "run", "--quiet", "--name", "callback", "--overhead-budget", "100", "--",
             self.python, "-W", "ignore", "-c", CALLBACK], self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual(done.stdout.split(), ["True", "False", "False"])
        answer = self.ask("regions", "callback")
        self.assertEqual([(row["name"], row["count"]) for row in answer["regions"]], [("mine", 3)])

    def test_ranges_that_are_never_ended_take_no_room_from_others(self):
        with tempfile.TemporaryDirectory() as folder:
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--name", "leaks", "--overhead-budget", "100",
                 "--", self.python, "-W", "ignore", os.path.join(PUPPETS, "scopes.py"),
                 os.path.join(folder, "told"), "never_ended"], self.host.environment)
        self.assertEqual((done.status, done.stdout), (0, ""), done.stderr)
        answer = self.ask("regions", "leaks")
        self.assertEqual({"/".join([*row["path"], row["name"]]): row["count"]
                          for row in answer["regions"]}, {"around": 1, "around/after": 10})
        self.assertEqual(answer["unopened"], 1000 - 256)


class Cost(loader_test.TorchOnTheCpu):
    """Where the governor decides what is recorded, by what it costs."""

    def run_tight(self, name, seconds, *options):
        with tempfile.TemporaryDirectory() as folder:
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--name", name, *options, "--",
                 self.python, "-W", "ignore", os.path.join(PUPPETS, "scopes.py"),
                 os.path.join(folder, "told"), "tight", str(seconds)],
                self.host.environment)
        self.assertEqual(done.status, 0, done.stderr)
        opened = int(done.stdout)
        answer = self.ask("regions", name)
        (row,) = answer["regions"]
        # What came before PyTorch's callback was in counts as neither.
        self.assertEqual(row["count"] + answer["losses"]["scopes_thinned"]
                         + answer["unnamed"] + answer["unopened"], opened)
        return answer, answer["overhead"]["self_ms"] / opened

    def test_a_tight_loop_of_scopes_is_thinned_and_says_so(self):
        # The governor looks once a second and takes two steps: most of this is thinned.
        thinned, cost_thinned = self.run_tight("tight", 8)
        self.assertGreater(thinned["losses"]["scopes_thinned"], 0)
        every, cost = self.run_tight("every", 3, "--overhead-budget", "100")
        self.assertEqual(every["losses"]["scopes_thinned"], 0)
        print(f"a scope takes {1e6 * cost:.0f} ns, {1e6 * cost_thinned:.0f} where it is thinned")
        # Both on this machine, per scope that was opened: two thirds are usual.
        self.assertLess(cost_thinned, 0.8 * cost)

    def test_names_without_end_do_not_fill_the_arena(self):
        with tempfile.TemporaryDirectory() as folder:
            done = guest.execute(
                [guest.LULL, "run", "--quiet", "--name", "many", "--", self.python,
                 os.path.join(PUPPETS, "scopes.py"), os.path.join(folder, "told"), "many"],
                self.host.environment)
        self.assertEqual((done.status, done.stdout), (0, ""), done.stderr)
        answer = self.ask("regions", "many")
        self.assertGreater(answer["unnamed"], 1000)
        told = sum(row["count"] for row in answer["regions"])
        self.assertEqual(told + answer["unnamed"], 20_000)
        self.assertEqual(answer["losses"]["stacks_rejected"], 0)


if __name__ == "__main__":
    unittest.main()
